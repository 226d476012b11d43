//! Has the sources take their mutexes from shuttle.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(on_shuttle, docsrs)");
    println!("cargo::rustc-cfg=on_shuttle");
    println!("cargo::rerun-if-changed=build.rs");
}
