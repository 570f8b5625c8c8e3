//! [`Choice`]: which provider, told by environment and flags. Keys come from the environment alone.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Anthropic, Breaker, HttpClient, OpenAi, Provider, Retry};
use crate::error::HostError;

/// A text that is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one header that carries it.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `message` without the secret: services repeat keys in their complaints.
    pub(super) fn redact(&self, message: &str) -> String {
        if self.0.is_empty() { message.to_owned() } else { message.replace(&self.0, "[key]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "Secret(none)" } else { "Secret(..)" })
    }
}

/// What a service speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// OpenAI's chat completions, which many services speak.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "openai" => Ok(Self::OpenAi),
            "anthropic" => Ok(Self::Anthropic),
            _ => Err(format!("`{text}` is no provider: expected `openai` or `anthropic`")),
        }
    }
}

/// Which provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What it speaks.
    pub kind: Kind,
    /// Where it is, without the path of the request.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// Its key; empty for a service that wants none.
    pub key: Secret,
    /// What one request may take.
    pub timeout: Duration,
    /// Longest reply, where the service wants it named.
    pub max_tokens: u32,
}

impl Choice {
    /// What flags (`kind`, `model`) and the environment say. With neither a flag nor `UDF_HOST_LLM_PROVIDER` the one
    /// whose key is there is taken.
    ///
    /// # Errors
    /// Nothing names a provider, a variable is no value, or there is no model or key.
    pub fn resolve(
        kind: Option<Kind>,
        model: Option<String>,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, HostError> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let bad =
            |place: &str, message: String| HostError::Config { place: place.to_owned(), message };
        let named = get("UDF_HOST_LLM_PROVIDER")
            .map(|text| text.parse().map_err(|message| bad("UDF_HOST_LLM_PROVIDER", message)))
            .transpose()?;
        let by_key = || {
            [("ANTHROPIC_API_KEY", Kind::Anthropic), ("OPENAI_API_KEY", Kind::OpenAi)]
                .into_iter()
                .find_map(|(name, kind)| get(name).map(|_| kind))
        };
        let kind = kind.or(named).or_else(by_key).ok_or_else(|| {
            bad(
                "UDF_HOST_LLM_PROVIDER",
                "no model provider is set: say `openai` or `anthropic` here or with `--provider`, \
                 or try a run with `--dry-run --script FILE`"
                    .to_owned(),
            )
        })?;
        let (prefix, base) = match kind {
            Kind::OpenAi => ("OPENAI", OpenAi::BASE),
            Kind::Anthropic => ("ANTHROPIC", Anthropic::BASE),
        };
        let either = |ours: &str, theirs: &str| {
            get(&format!("UDF_HOST_LLM_{ours}")).or_else(|| get(&format!("{prefix}_{theirs}")))
        };
        let base_url = either("BASE_URL", "BASE_URL");
        let key = either("KEY", "API_KEY");
        if key.is_none() && base_url.is_none() {
            return Err(bad("UDF_HOST_LLM_KEY", format!("no key: set it, or `{prefix}_API_KEY`")));
        }
        let model = model.or_else(|| either("MODEL", "MODEL")).ok_or_else(|| {
            bad("UDF_HOST_LLM_MODEL", "no model: name one here or with `--model`".to_owned())
        })?;
        let number = |name: &str, default: u32| match get(name) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .ok()
                .filter(|number| *number > 0)
                .ok_or_else(|| bad(name, format!("`{text}` is not a number above 0"))),
        };
        Ok(Self {
            kind,
            base_url: base_url.unwrap_or_else(|| base.to_owned()).trim_end_matches('/').to_owned(),
            model,
            key: Secret::new(key.unwrap_or_default()),
            timeout: Duration::from_secs(number("UDF_HOST_LLM_TIMEOUT", 180)?.into()),
            max_tokens: number("UDF_HOST_LLM_MAX_TOKENS", 8192)?,
        })
    }

    /// The provider, behind its breaker.
    #[must_use]
    pub fn connect(self) -> Breaker {
        let path = match self.kind {
            Kind::OpenAi => OpenAi::PATH,
            Kind::Anthropic => Anthropic::PATH,
        };
        let url = format!("{}{path}", self.base_url);
        let client = HttpClient::new(url, self.key, self.timeout, Retry::default());
        let provider: Box<dyn Provider> = match self.kind {
            Kind::OpenAi => Box::new(OpenAi::new(client, self.model)),
            Kind::Anthropic => Box::new(Anthropic::new(client, self.model, self.max_tokens)),
        };
        Breaker::new(provider, Breaker::LIMIT, Breaker::REST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(kind: Option<Kind>, env: &[(&str, &str)]) -> Result<Choice, String> {
        let get = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        Choice::resolve(kind, None, get).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_then_our_variables_then_those_of_the_service() {
        let found = resolve(None, &[("OPENAI_API_KEY", "k"), ("OPENAI_MODEL", "m")]).unwrap();
        assert_eq!(
            (found.kind, found.base_url.as_str(), found.model.as_str()),
            (Kind::OpenAi, OpenAi::BASE, "m")
        );
        assert_eq!(found.key, Secret::new("k"));
        let found = resolve(
            Some(Kind::Anthropic),
            &[
                ("UDF_HOST_LLM_PROVIDER", "openai"),
                ("UDF_HOST_LLM_BASE_URL", "http://127.0.0.1:9/"),
                ("UDF_HOST_LLM_MODEL", "x"),
                ("ANTHROPIC_MODEL", "y"),
            ],
        )
        .unwrap();
        assert_eq!(
            (found.kind, found.base_url.as_str(), found.model.as_str()),
            (Kind::Anthropic, "http://127.0.0.1:9", "x")
        );
        assert!(found.key.is_empty(), "a service of one's own may want no key");
    }

    #[test]
    fn what_is_missing_is_named() {
        for (env, want) in [
            (&[][..], "--dry-run"),
            (&[("UDF_HOST_LLM_PROVIDER", "smoke")], "`smoke` is no provider"),
            (&[("UDF_HOST_LLM_PROVIDER", "openai")], "OPENAI_API_KEY"),
            (&[("ANTHROPIC_API_KEY", "k")], "UDF_HOST_LLM_MODEL"),
            (
                &[
                    ("ANTHROPIC_API_KEY", "k"),
                    ("ANTHROPIC_MODEL", "m"),
                    ("UDF_HOST_LLM_TIMEOUT", "0"),
                ],
                "`0` is not a number above 0",
            ),
        ] {
            let error = resolve(None, env).unwrap_err();
            assert!(error.contains(want), "{error}");
        }
        assert_eq!(format!("{:?}", Secret::new("k")), "Secret(..)");
    }
}
