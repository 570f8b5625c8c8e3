//! What the user of the project chose: the environment first, then `[settings]` of `project.toml`.

use sdk::Context;

/// Looks settings up.
pub(crate) trait Choice {
    /// The text of a setting; empty and absent are the same.
    ///
    /// # Errors
    /// `project.toml` cannot be used.
    fn setting(&self, name: &str) -> Result<Option<String>, String>;

    /// The text of an environment variable; empty and absent are the same.
    fn variable(&self, name: &str) -> Option<String>;

    /// The variable, else the setting.
    ///
    /// # Errors
    /// As [`Choice::setting`].
    fn either(&self, variable: &str, setting: &str) -> Result<Option<String>, String> {
        match self.variable(variable) {
            Some(text) => Ok(Some(text)),
            None => self.setting(setting),
        }
    }
}

impl Choice for Context {
    fn setting(&self, name: &str) -> Result<Option<String>, String> {
        let text = Context::setting(self, name).map_err(|error| error.message().to_owned())?;
        Ok(text.filter(|text| !text.is_empty()))
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|text| !text.is_empty())
    }
}
