//! The writer's hold.

use std::ops::Deref;

use zookeeper_recipes_core::{Error, Hold, Queue};

use crate::rule::{READ, WRITE};

/// A writer's hold, which can become a reader's.
///
/// It has the methods of its [`Hold`]. One place in the program owns it. If it is dropped, it is
/// released in the background. Tasks that work under it, and do not decide when it ends, take a
/// [`view`](Hold::view).
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

    /// Becomes a reader's hold. No writer can hold in between.
    ///
    /// A reader's znode replaces the writer's, in the same place of the queue. The readers behind
    /// it, up to the next writer, hold at once. That writer waits until all these readers have
    /// released, this one included. [There is no way back](crate::RwLock#no-upgrade).
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a transaction | 1 | 1 | 0 |
    ///
    /// The fencing token stays the same, and is older than the next writer's. In
    /// [`contenders`](crate::RwLock::contenders) the reader has another token, that of its new
    /// znode.
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] if the znode's number is 2147483647, the last one, which is not
    ///   unique.
    /// * [`Error::Lost`] if the hold was lost before.
    /// * [`Error::Refused`] if the server does not create the reader's znode.
    /// * [`Error::SessionOver`].
    ///
    /// After each of them the hold is released in the background.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the hold is released in the background.
    ///
    /// # Session loss
    ///
    /// If the session ends, the hold is lost.
    ///
    /// ```
    /// use zookeeper_recipes_rwlock::{RwLock, Session};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
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

    /// The plain [`Hold`], for code that takes the hold of any recipe.
    pub fn into_hold(self) -> Hold {
        self.hold
    }

    /// Releases, and waits for the server's answer.
    ///
    /// # Errors, cancel safety
    ///
    /// Those of [`Hold::release`].
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
