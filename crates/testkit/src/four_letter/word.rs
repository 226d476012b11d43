//! The words themselves.

use std::fmt;

/// A question that a ZooKeeper server answers to anyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FourLetterWord {
    /// `conf`: the configuration it runs with.
    Conf,
    /// `cons`: each connection with its session and figures.
    Cons,
    /// `dump`: sessions and their ephemeral znodes.
    Dump,
    /// `envi`: what it runs on, with the versions of it all.
    Envi,
    /// `mntr`: figures, one a line.
    Mntr,
    /// `ruok`: `imok` from any server whose process answers.
    Ruok,
    /// `srst`: sets the figures back to zero.
    Srst,
    /// `srvr`: its mode and its last zxid.
    Srvr,
    /// `wchp`: watched paths, each with the sessions that watch it.
    Wchp,
    /// `wchs`: how many watches there are.
    Wchs,
}

impl FourLetterWord {
    /// The word as it goes over the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conf => "conf",
            Self::Cons => "cons",
            Self::Dump => "dump",
            Self::Envi => "envi",
            Self::Mntr => "mntr",
            Self::Ruok => "ruok",
            Self::Srst => "srst",
            Self::Srvr => "srvr",
            Self::Wchp => "wchp",
            Self::Wchs => "wchs",
        }
    }
}

impl fmt::Display for FourLetterWord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
