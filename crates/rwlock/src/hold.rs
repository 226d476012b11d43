//! The writer's hold.

use std::ops::Deref;

use zookeeper_recipes_core::{Error, Hold, Queue};

use crate::rule::{READ, WRITE};

/// A [`Hold`] of a writer, which can become a reader's.
///
/// Everything that a [`Hold`] can do it can do, and like one it is released when it is dropped, and
/// is lost with its session.
#[derive(Debug)]
#[must_use = "if unused, what is held is released at once"]
pub struct WriteHold {
    hold: Hold,
    queue: Queue,
}

impl WriteHold {
    pub(crate) fn new(hold: Hold, queue: &Queue) -> WriteHold {
        let queue = queue.clone();
        WriteHold { hold, queue }
    }

    /// Goes on as a reader, without a moment in which somebody else could write.
    ///
    /// One transaction, one request: the writer's znode goes and a reader's comes, with the same
    /// number and so in the same place. The readers that waited behind, up to the next writer, get
    /// in; that writer waits until all of them have gone, and this one too.
    ///
    /// The fencing token stays the same, and stays valid: what has been written with it can be
    /// written again, and it is older than the next writer's. (In
    /// [`contenders`](crate::Recipe::contenders) the reader is shown with its own znode's token,
    /// which is another.)
    ///
    /// There is no way back but to release and acquire: see
    /// [`RwLock`](crate::RwLock#no-upgrade).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when its number is 2147483647, the last of all, which others may have
    /// too.
    /// [`Error::Lost`] when the hold had been lost before, [`Error::Refused`] when the server would
    /// not create the reader's znode, [`Error::SessionOver`]: after any of these, what was held is
    /// released, in the background.
    ///
    /// # Cancel safety
    ///
    /// Dropped half-way, what was held is released.
    ///
    /// # Session loss
    ///
    /// As before it: the hold is lost.
    ///
    /// ```
    /// # use zookeeper_recipes_core::ConnectOptions;
    /// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
    /// use zookeeper_recipes_rwlock::{Recipe, Session, RwLock};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let simulation = Simulation::new(SimulationOptions::default());
    /// # let session = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
    /// let lock = RwLock::new(&session, "/locks/catalogue")?;
    /// let writing = lock.write().acquire().await?;
    /// let token = writing.fencing_token();
    ///
    /// let reading = writing.downgrade().await?;
    /// assert_eq!(reading.fencing_token(), token);
    /// assert!(lock.read().try_acquire().await?.is_some());
    /// assert!(lock.write().try_acquire().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn downgrade(self) -> Result<Hold, Error> {
        let WriteHold { hold, queue } = self;
        let options = queue.options();
        hold.replace(WRITE, READ, options.get_data(), options.get_acl())
            .await
    }

    /// The plain [`Hold`], for code that runs with any recipe's.
    pub fn into_hold(self) -> Hold {
        self.hold
    }

    /// As [`Hold::release`], with its requests, errors and cancel safety.
    pub async fn release(self) -> Result<(), Error> {
        self.hold.release().await
    }
}

impl Deref for WriteHold {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.hold
    }
}

impl From<WriteHold> for Hold {
    fn from(hold: WriteHold) -> Hold {
        hold.into_hold()
    }
}
