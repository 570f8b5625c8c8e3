//! [`Metered`]: counts what a turn asks of its provider.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Chat, Provider, ProviderError};

/// Bytes of text to a token, roughly: services count differently, and a limit needs no more.
const BYTES_PER_TOKEN: usize = 4;

/// Passes everything on and counts tokens, estimated: of every request the whole conversation, and its reply.
pub struct Metered<'a> {
    provider: &'a dyn Provider,
    tokens: AtomicU64,
}

impl<'a> Metered<'a> {
    /// A meter in front of `provider`.
    #[must_use]
    pub fn new(provider: &'a dyn Provider) -> Self {
        Self { provider, tokens: AtomicU64::new(0) }
    }

    /// Tokens so far.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Metered<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metered").field("tokens", &self.tokens()).finish_non_exhaustive()
    }
}

impl Provider for Metered<'_> {
    fn complete(&self, chat: &Chat<'_>) -> Result<String, ProviderError> {
        let reply = self.provider.complete(chat);
        let asked: usize = chat.messages.iter().map(|message| message.text.len()).sum();
        let said = match &reply {
            Ok(text) | Err(ProviderError::Unusable { text, .. }) => text.len(),
            Err(_) => 0,
        };
        let tokens = (chat.system.len() + asked + said) / BYTES_PER_TOKEN;
        self.tokens.fetch_add(tokens as u64, Ordering::Relaxed);
        reply
    }

    fn behind(&self) -> Option<&dyn Provider> {
        Some(self.provider)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Message, Scripted};
    use super::*;

    #[test]
    fn a_conversation_counts_whole_each_time() {
        let scripted = Scripted::parse("abcd\nabcd").unwrap();
        let metered = Metered::new(&scripted);
        let messages = [Message::user("12345678")];
        for tokens in [4, 8] {
            metered.complete(&Chat { system: "1234", messages: &messages }).unwrap();
            assert_eq!(metered.tokens(), tokens);
        }
        assert_eq!(metered.position(), Some(2));
    }
}
