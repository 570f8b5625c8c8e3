//! Reads a request body within its limit, or to its end without keeping it.

use std::time::Duration;

use bytes::{Buf, Bytes};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Body;

use super::error::Failure;

/// How much of a refused body is read so that the reply arrives instead of a reset connection.
const DRAIN_LIMIT: u64 = 64 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// The whole body, at most `limit` bytes. 413 beyond it (the rest is read and dropped first), 400 for a body that
/// breaks off.
pub(crate) async fn read<B>(mut body: B, limit: usize) -> Result<Bytes, Failure>
where
    B: Body + Unpin,
    B::Data: Buf,
{
    if body.size_hint().lower() > limit as u64 {
        drain(body).await;
        return Err(too_large(limit));
    }
    let mut first = Bytes::new();
    let mut whole: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(Failure::new(StatusCode::BAD_REQUEST, "the body broke off before its end")
                .closing());
        };
        let Ok(mut data) = frame.into_data() else { continue }; // Trailers say nothing to us.
        let held = first.len() + whole.len();
        if data.remaining() > limit - held.min(limit) {
            drain(body).await;
            return Err(too_large(limit));
        }
        if held == 0 {
            // The usual body is one piece and is taken as it lies.
            first = data.copy_to_bytes(data.remaining());
            continue;
        }
        if whole.is_empty() {
            whole.reserve(first.len() + data.remaining());
            whole.extend_from_slice(&std::mem::take(&mut first));
        }
        while data.has_remaining() {
            let piece = data.chunk();
            whole.extend_from_slice(piece);
            let read = piece.len();
            data.advance(read);
        }
    }
    Ok(if whole.is_empty() { first } else { Bytes::from(whole) })
}

/// Reads a refused body to its end, within reason. A sender that never looks at the reply before it has written all
/// would otherwise see a broken connection in place of our refusal. `false` if there was more than we care to read.
pub(crate) async fn drain<B>(mut body: B) -> bool
where
    B: Body + Unpin,
    B::Data: Buf,
{
    let mut left = DRAIN_LIMIT;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let read = frame.data_ref().map_or(0, |data| data.remaining() as u64);
            let Some(rest) = left.checked_sub(read) else { return false };
            left = rest;
        }
        true
    };
    tokio::time::timeout(DRAIN_TIME, reading).await.unwrap_or(false)
}

fn too_large(limit: usize) -> Failure {
    Failure::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the body is over the limit of {limit} bytes"),
    )
}
