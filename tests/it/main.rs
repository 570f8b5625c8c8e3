//! Black-box tests: the real binary, real plugins, real sockets. One module per promise.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod support;
