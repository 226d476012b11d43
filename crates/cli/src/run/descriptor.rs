//! Passing an open descriptor to another process of `zkr`, over a socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

pub(super) fn send(to: &UnixStream, descriptor: impl AsFd) -> io::Result<()> {
    let descriptors: [BorrowedFd<'_>; 1] = [descriptor.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    with.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(to, &[IoSlice::new(b"\n")], &mut with, SendFlags::empty())?;
    Ok(())
}

/// Receives a descriptor. It is closed when this process becomes another program.
pub(super) fn receive(from: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut received = RecvAncillaryBuffer::new(&mut space);
    // One byte, so that nothing behind it is read with it.
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    recvmsg(from, &mut parts, &mut received, RecvFlags::empty())?;
    let descriptor = received.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let descriptor = descriptor.ok_or_else(|| io::Error::other("no descriptor was sent"))?;
    // Not every system can receive a descriptor like that. No process is started before this.
    fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
    Ok(descriptor)
}
