//! The codec, against Apache's classes, and against garbage.

mod apache;
mod bytes;
mod decoding;
mod frames;
mod garbage;
mod golden;
mod rejected;
mod secrets;
