//! Who answers the prompts: options of the commands that run tasks.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use crate::agent::Provider;
use crate::agent::provider::{Breaker, Choice, Kind, Scripted};
use crate::error::HostError;

/// Options about the model.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model options")]
pub(super) struct Model {
    /// `openai` or `anthropic`: what the service speaks [env: UDF_HOST_LLM_PROVIDER; its address UDF_HOST_LLM_BASE_URL]
    #[arg(long, value_name = "KIND", conflicts_with = "dry_run")]
    provider: Option<Kind>,
    /// The model's name there [env: UDF_HOST_LLM_MODEL]; the key comes from UDF_HOST_LLM_KEY, OPENAI_API_KEY or
    /// ANTHROPIC_API_KEY alone
    #[arg(long, value_name = "NAME", conflicts_with = "dry_run")]
    model: Option<String>,
    /// Ask no model: take the replies from `--script`.
    #[arg(long, requires = "script")]
    dry_run: bool,
    /// Replies for `--dry-run`: a JSON list, or one reply per line.
    #[arg(long, value_name = "FILE", requires = "dry_run")]
    script: Option<PathBuf>,
}

impl Model {
    /// Whether the replies come from a file.
    pub(super) fn is_scripted(&self) -> bool {
        self.script.is_some()
    }

    /// The provider that is meant.
    pub(super) fn connect(&self) -> Result<Arc<dyn Provider>, HostError> {
        if let Some(script) = &self.script {
            let scripted = Box::new(Scripted::open(script)?);
            return Ok(Arc::new(Breaker::new(scripted, Breaker::LIMIT, Breaker::REST)));
        }
        let env = |name: &str| std::env::var(name).ok();
        Ok(Arc::new(Choice::resolve(self.provider, self.model.clone(), env)?.connect()))
    }
}
