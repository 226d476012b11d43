//! The stripe of a name.

use super::stripe;

#[test]
fn stripe_is_the_published_hash_of_the_name() {
    // Test vectors of the authors of FNV: "", "a" and "foobar".
    let hash = |name| {
        let text = stripe(name, u32::MAX);
        let number = text.split('-').next().map(str::to_owned);
        number.and_then(|number| number.parse::<u64>().ok())
    };
    for (name, published) in [
        ("", 0xcbf2_9ce4_8422_2325_u64),
        ("a", 0xaf63_dc4c_8601_ec8c),
        ("foobar", 0x8594_4171_f739_67e8),
    ] {
        assert_eq!(hash(name), Some(published % u64::from(u32::MAX)), "{name}");
    }
}
