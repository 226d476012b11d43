//! DIGEST-MD5 (RFC 2831), the mechanism by which ZooKeeper's servers check a password.
//!
//! The server sends a challenge. The client answers with a digest of the password, and the server
//! proves by a digest of its own that it knows the password, too. The password is never sent.

use std::collections::HashMap;
use std::fmt;

use fastrand::Rng;

/// The service and the host that each server of ZooKeeper says it is.
const URI: &str = "zookeeper/zk-sasl-md5";
/// Each exchange has a nonce of its own, which is used once.
const NONCE_COUNT: &str = "00000001";

/// The client's side of an exchange of SASL by DIGEST-MD5, without I/O.
///
/// A session has one of its own: see [`Config::auth`](crate::Config::auth).
pub struct DigestMd5 {
    user: String,
    password: String,
    random: Rng,
    /// What the server has to send next. `None` before its challenge.
    proof: Option<String>,
}

/// What follows from a token of the server.
#[derive(Debug, PartialEq, Eq)]
pub enum SaslStep {
    /// The client sends this token.
    Respond(Vec<u8>),
    /// Both sides know the password.
    Done,
}

impl DigestMd5 {
    /// The scheme of its credentials. Servers know no `auth` request of this scheme.
    pub const SCHEME: &str = "sasl";

    /// `credentials` are a user and a password, with a colon between them. The client's nonces are
    /// drawn from `seed`.
    pub fn new(credentials: &[u8], seed: u64) -> DigestMd5 {
        let credentials = String::from_utf8_lossy(credentials);
        let (user, password) = credentials.split_once(':').unwrap_or((&credentials, ""));
        DigestMd5 {
            user: user.to_owned(),
            password: password.to_owned(),
            random: Rng::with_seed(seed),
            proof: None,
        }
    }

    /// Begins an exchange, and returns its first token.
    pub fn begin(&mut self) -> Vec<u8> {
        self.proof = None;
        Vec::new()
    }

    /// The next step after a token of the server. `None` if the server does not speak this mechanism,
    /// or does not know the password.
    pub fn next(&mut self, token: &[u8]) -> Option<SaslStep> {
        let fields = fields(token)?;
        if let Some(proof) = self.proof.take() {
            return (fields.get("rspauth")? == &proof).then_some(SaslStep::Done);
        }
        let mut protections = fields.get("qop").map_or("auth", |it| it).split(',');
        let is_known = fields.get("algorithm")?.eq_ignore_ascii_case("md5-sess")
            && protections.any(|it| it.trim() == "auth");
        let nonce = fields.get("nonce").filter(|_| is_known)?;
        let realm = fields.get("realm").map_or("", |it| it);
        let cnonce = format!("{:032x}", self.random.u128(..));
        let keys = Keys {
            user: &self.user,
            password: &self.password,
            realm,
            nonce,
            cnonce: &cnonce,
            uri: URI,
        };
        self.proof = Some(keys.digest(""));
        let response = format!(
            "charset=utf-8,username={},realm={},nonce={},nc={NONCE_COUNT},cnonce={},digest-uri={},\
             response={},qop=auth",
            quoted(&self.user),
            quoted(realm),
            quoted(nonce),
            quoted(&cnonce),
            quoted(URI),
            keys.digest("AUTHENTICATE")
        );
        Some(SaslStep::Respond(response.into_bytes()))
    }
}

/// Leaves the password out.
impl fmt::Debug for DigestMd5 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DigestMd5").finish_non_exhaustive()
    }
}

/// What both digests are made of.
struct Keys<'a> {
    user: &'a str,
    password: &'a str,
    realm: &'a str,
    nonce: &'a str,
    cnonce: &'a str,
    uri: &'a str,
}

impl Keys<'_> {
    /// The digest of the client, whose method is `AUTHENTICATE`, or of the server, which has none.
    fn digest(&self, method: &str) -> String {
        let Keys { nonce, cnonce, .. } = self;
        let secret = [self.user, self.realm, self.password].map(encoded);
        let secret = md5::compute(secret.join(&b':'));
        let of_session = [&secret[..], format!(":{nonce}:{cnonce}").as_bytes()].concat();
        let of_session = md5::compute(of_session);
        let of_method = md5::compute(format!("{method}:{}", self.uri));
        let digest = format!("{of_session:x}:{nonce}:{NONCE_COUNT}:{cnonce}:auth:{of_method:x}");
        format!("{:x}", md5::compute(digest))
    }
}

/// ISO 8859-1 if it has all characters, else UTF-8.
fn encoded(text: &str) -> Vec<u8> {
    let latin: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    latin.unwrap_or_else(|_| text.as_bytes().to_vec())
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The fields of a token: `name=value` or `name="value"`, with commas between them.
///
/// A server may offer several realms. The first one counts.
fn fields(token: &[u8]) -> Option<HashMap<&str, String>> {
    let mut rest = std::str::from_utf8(token).ok()?;
    let mut fields = HashMap::new();
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t', '\r', '\n']);
        if rest.is_empty() {
            return Some(fields);
        }
        let (name, after) = rest.split_once('=')?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (value, after) = after.split_once(',').unwrap_or((after, ""));
                (value.trim().to_owned(), after)
            }
        };
        fields.entry(name.trim()).or_insert(value);
        rest = after;
    }
}

/// The value before the next quotation mark, and what comes behind the mark.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '"' => return Some((value, characters.as_str())),
            '\\' => value.push(characters.next()?),
            character => value.push(character),
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/digest_md5.rs"]
mod tests;
