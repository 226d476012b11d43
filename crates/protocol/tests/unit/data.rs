//! Tests of `src/data.rs`.

use super::*;

#[test]
fn permissions_print_their_names() {
    assert_eq!(Permission::NONE.to_string(), "nothing");
    let some = Permission::READ | Permission::ADMIN;
    assert_eq!(some.to_string(), "read, admin");
    assert!(Permission::ALL.has(some));
    assert!(!some.has(Permission::WRITE));
}

#[test]
fn time_of_creation_is_one_that_every_system_has() {
    const LATEST: i64 = 253_402_300_799_999;
    for (ctime, milliseconds) in [
        (i64::MIN, 0),
        (-1, 0),
        (1_500, 1_500),
        (LATEST, LATEST.unsigned_abs()),
        (i64::MAX, LATEST.unsigned_abs()),
    ] {
        let stat = Stat {
            ctime,
            ..Stat::default()
        };
        let created = UNIX_EPOCH + Duration::from_millis(milliseconds);
        assert_eq!(stat.created(), created, "{ctime}");
    }
}

#[test]
fn digest_is_not_shown() {
    let shown = format!("{:?}", AuthId::new("digest", "me:secret"));
    assert!(shown.contains("me") && !shown.contains("secret"), "{shown}");
    let shown = format!("{:?}", AuthId::new("ip", "::1"));
    assert!(shown.contains("::1"), "{shown}");
}
