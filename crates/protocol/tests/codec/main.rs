//! The codec, against itself, against Apache's classes, and against garbage.

mod bytes;
mod decoding;
mod frames;
mod garbage;
mod golden;
mod messages;
mod rejected;
mod round_trip;
mod secrets;
