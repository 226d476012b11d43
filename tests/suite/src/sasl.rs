//! Servers that know a user by SASL, and accept no request without it.

use std::fs;
use std::path::Path;

use zookeeper_recipes_testkit::ServerOptions;

const PROVIDER: &str = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider";

/// A server that requires SASL, and knows this user. The directory has to stay.
pub fn requiring_sasl(directory: &Path, user: &str, password: &str) -> ServerOptions {
    let users = directory.join("jaas.conf");
    let login = "org.apache.zookeeper.server.auth.DigestLoginModule required";
    let password = password.replace('"', "\\\"");
    let text = format!("Server {{ {login} user_{user}=\"{password}\"; }};");
    fs::write(&users, text).expect("it is written");
    ServerOptions::new()
        .configuration("authProvider.1", PROVIDER)
        .system_property(
            "java.security.auth.login.config",
            users.display().to_string(),
        )
        .system_property("zookeeper.sessionRequireClientSASLAuth", "true")
}
