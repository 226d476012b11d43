//! The referee: an outside process that contenders of every language tell when they go in and
//! when they come out.
//!
//! `referee <expected>` answers no `ready` before that many contenders are. It prints its address,
//! and ends when its standard input does.

use std::io;

use anyhow::Context;
use zookeeper_recipes_interop::Referee;

fn main() -> anyhow::Result<()> {
    let expected = std::env::args().nth(1).context("referee <expected>")?;
    let expected = expected.parse().context("not a number of contenders")?;
    let referee = Referee::listen(expected)?;
    println!("{}", referee.address());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
