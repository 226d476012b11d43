//! `zkr lead`: a command that runs while this process leads.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::connecting::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run::{Leading, TaskArguments};

/// Run a command while this process leads.
///
/// If the leadership is being lost, zkr stops the command and its children before another candidate
/// can lead, and campaigns again. If `zkr leader --transfer-to` names another candidate, zkr stops
/// the command, resigns and campaigns again. If the command ends by itself, zkr resigns and ends
/// with the command's exit code. If the command runs longer than --max-hold, zkr stops it as for a
/// loss.
///
/// The command finds ZKR_FENCING_TOKEN, ZKR_PATH and ZKR_NODE in its environment. Curator's
/// LeaderLatch and zookeeper-recipes' LeaderElection take part in the same election.
#[derive(Debug, Args)]
pub(crate) struct Lead {
    /// The directory of the election, such as /app/leader.
    path: String,

    /// The name of this candidate, which `zkr leader` shows.
    #[arg(long, value_name = "NAME")]
    id: String,

    /// Lead only while no other candidate campaigns.
    #[arg(long)]
    standby: bool,

    /// Keep campaigning while the servers refuse the credentials after the first session.
    ///
    /// A server that is restarted with a wrong configuration does that for a while. By default zkr
    /// ends with exit code 77 then.
    #[arg(long)]
    retry_credentials: bool,

    /// End after the leadership was lost or transferred, instead of campaigning again.
    #[arg(long)]
    once: bool,

    /// End if it does not lead within this time, at first and after each loss.
    #[arg(short = 'w', long, alias = "wait", value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// A file of the servers, in the form of --connect and in place of it.
    ///
    /// SIGHUP has zkr read it again, and the leadership moves to its servers, which have to be of the
    /// same ensemble. The command does not get the signal then.
    #[arg(long, value_name = "FILE")]
    connect_file: Option<PathBuf>,

    #[command(flatten)]
    task: TaskArguments,
}

impl Lead {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let leading = Leading {
            connection,
            connect_file: self.connect_file.as_deref(),
            path: &self.path,
            id: &self.id,
            standby: self.standby,
            once: self.once,
            retry_credentials: self.retry_credentials,
            timeout: self.timeout,
            task: &self.task,
        };
        leading.run().await
    }
}
