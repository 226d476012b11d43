//! `zkr lead`: campaigning, running the command while leading, and campaigning again after a loss.

use std::future::{pending, ready};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rustix::process::Signal;
use zookeeper_recipes_core::{Error, Session};
use zookeeper_recipes_election::{ElectionOptions, LeaderElection, Leadership};

use super::hosts_file::HostsFile;
use super::signals::Signals;
use super::supervise::{Ending, supervise};
use super::task::TaskArguments;
use super::under_hold::{heard, lost, release};
use crate::addresses::Addresses;
use crate::connecting::{Connection, close};
use crate::duration;
use crate::exit::Exit;
use crate::failure::{Failure, warn};

/// The pause after a failed campaign.
const PAUSE: Duration = Duration::from_secs(1);

/// Run a command while this process leads.
///
/// If the leadership is about to be lost, zkr stops the command and its children before another
/// candidate can lead, and campaigns again. If `zkr leader --transfer-to` names another candidate, zkr
/// stops the command, resigns and campaigns again. If the command ends by itself, zkr resigns and
/// exits with the command's code. If the command runs longer than --max-hold, zkr stops it as for a
/// loss.
///
/// The command gets ZKR_FENCING_TOKEN, ZKR_PATH and ZKR_NODE in its environment. Curator's
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

    /// Keep campaigning if the servers begin to refuse the credentials.
    ///
    /// A server that was restarted with a wrong configuration may do so for a while. By default zkr
    /// then exits with code 77.
    #[arg(long)]
    retry_credentials: bool,

    /// Exit after the leadership is lost or transferred, instead of campaigning again.
    #[arg(long)]
    once: bool,

    /// Exit if it does not lead within this time, at the start and after each loss.
    #[arg(short = 'w', long, alias = "wait", value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// A file with the servers, in the format of --connect, which it replaces.
    ///
    /// On SIGHUP, zkr reads it again and moves the leadership to its servers, which must belong to the
    /// same ensemble. The command does not get that signal.
    #[arg(long, value_name = "FILE")]
    connect_file: Option<PathBuf>,

    #[command(flatten)]
    task: TaskArguments,
}

impl Lead {
    /// Runs the command while this candidate leads, until the command ends by itself.
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        self.task.look_at_command()?;
        let mut signals = heard()?;
        let mut connection = connection.clone();
        let hosts = self
            .connect_file
            .as_deref()
            .map(HostsFile::new)
            .transpose()?;
        if let Some(hosts) = &hosts {
            signals.leave_out(Signal::HUP);
            connection.connect = hosts.read()?;
        }
        let (owner, retries) = (self.task.owner(), self.retry_credentials);
        let opening = connection.open_for(owner, self.timeout, retries);
        let session = tokio::select! {
            biased;
            signal = signals.end() => return Ok(Exit::Signal(signal)),
            session = opening => session?,
        };
        let follow = async {
            match hosts {
                Some(hosts) => hosts.follow(&session).await,
                None => pending().await,
            }
        };
        let result = tokio::select! {
            biased;
            never = follow => match never {},
            result = self.in_session(&connection, &session, &mut signals) => result,
        };
        close(session).await;
        result
    }

    async fn in_session(
        &self,
        connection: &Connection,
        session: &Session,
        signals: &mut Signals,
    ) -> Result<Exit, Failure> {
        // What is wrong with the options is not to be found by the first leadership.
        self.task.in_session(connection, session)?;
        let mut options = ElectionOptions::new();
        if let Some(limit) = self.task.max_hold {
            options = options.max_hold(limit);
        }
        let mut election = LeaderElection::with_options(session, &*self.path, &*self.id, options)?;
        if self.standby {
            election = election.standby()?;
        }
        tokio::select! {
            biased;
            signal = signals.end() => return Ok(Exit::Signal(signal)),
            () = self.warn_of_namesakes(connection, session, &election) => {}
        }
        loop {
            let leadership = tokio::select! {
                biased;
                signal = signals.end() => return Ok(Exit::Signal(signal)),
                elected = self.elected(session, &election) => elected?,
            };
            // A later session may have another timeout.
            let task = self.task.in_session(connection, session)?;
            let asked = leadership.asked_to_resign();
            let view = leadership.view();
            match supervise(&view, ready(Ok(())), asked, &task, &self.path, signals).await {
                Ok(Ending::ByItself(exit)) => {
                    release(leadership.into_hold()).await;
                    return Ok(exit);
                }
                Ok(Ending::NotBegun(why)) => {
                    release(leadership.into_hold()).await;
                    return why;
                }
                Ok(Ending::Asked) => {
                    let failure = transferred(&self.path);
                    resign(leadership).await?;
                    if self.once {
                        return Err(failure);
                    }
                    failure.print();
                }
                Ok(Ending::Lost) if self.once => return Err(lost(&self.path, &view, &task).await),
                Ok(Ending::Lost) => {
                    lost(&self.path, &view, &task).await.print();
                    // The session deletes the znode in the background.
                    drop(leadership);
                }
                Err(failure) => {
                    release(leadership.into_hold()).await;
                    return Err(failure);
                }
            }
        }
    }

    /// Campaigns until it leads, for as long as the user allows.
    async fn elected(
        &self,
        session: &Session,
        election: &LeaderElection,
    ) -> Result<Leadership, Failure> {
        let Some(limit) = self.timeout else {
            return Ok(campaign(session, election).await?);
        };
        let elected = tokio::time::timeout(limit, campaign(session, election)).await;
        elected.map_or_else(
            |_| {
                let text = format!("{}: does not lead within {limit:?}", self.path);
                Err(Failure::new(Exit::TimedOut, text))
            },
            |elected| Ok(elected?),
        )
    }

    /// Warns of other candidates with the same id.
    async fn warn_of_namesakes(
        &self,
        connection: &Connection,
        session: &Session,
        election: &LeaderElection,
    ) {
        // The campaign itself reports what is wrong.
        let candidates = tokio::time::timeout(PAUSE, election.contenders()).await;
        let Ok(Ok(candidates)) = candidates else {
            return;
        };
        let namesake = candidates.iter().find(|it| it.data == self.id.as_bytes());
        let Some(namesake) = namesake else { return };
        let Ok(addresses) = Addresses::ask(session, connection).await else {
            return;
        };
        let address = addresses.of(namesake.session_id);
        warn(&format!(
            "{}: another candidate has the id {:?}: session {}, at {}; give each an id of its own",
            self.path,
            self.id,
            namesake.session_id,
            address.as_deref().unwrap_or("an unknown address"),
        ));
    }
}

/// Releases the leadership, and says so if that fails.
async fn resign(leadership: Leadership) -> Result<(), Error> {
    match leadership.release().await {
        Err(error @ Error::Refused { .. }) => return Err(error),
        Err(error) => Failure::from(error).print(),
        Ok(()) => {}
    }
    Ok(())
}

/// The failure of a command that was stopped for another candidate.
fn transferred(path: &str) -> Failure {
    let message = format!("{path}: another candidate is to lead; the command was stopped");
    Failure::new(Exit::Lost, message)
}

/// Campaigns until it leads, or until trying again would not help.
async fn campaign(session: &Session, election: &LeaderElection) -> Result<Leadership, Error> {
    loop {
        // If the session is over for good, the campaign says so.
        let _ = session.wait_connected().await;
        match election.acquire().await {
            Err(error) if error.is_retryable() => tokio::time::sleep(PAUSE).await,
            elected => return elected,
        }
    }
}
