//! [`Registry`]: which apps there are, whose they are and which port each has. One document under one lock.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use sdk::prelude::*;

const FOLDER: &str = "living-ui/registry";
const FILE: &str = "apps.json";
const LOCK: &str = ".registry.lock";
const WAIT: Duration = Duration::from_secs(10);

/// One app as the registry has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: String,
    /// The task it belongs to.
    pub(crate) owner: String,
    pub(crate) port: Option<u16>,
    /// It goes on being served though its task ended: the task was completed.
    pub(crate) kept: bool,
    /// When it was announced; empty is never.
    pub(crate) ready_at: String,
}

/// What a change of owner came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The owner before, if that was another task.
    pub(crate) previous: Option<String>,
}

/// The apps of a state folder.
#[derive(Debug)]
pub(crate) struct Registry<'c> {
    ctx: &'c Context,
    folder: Folder<'c>,
}

impl<'c> Registry<'c> {
    pub(crate) fn open(ctx: &'c Context) -> Result<Self, UdfError> {
        Ok(Self { ctx, folder: ctx.folder("", FOLDER, LOCK)? })
    }

    /// Every app, in order of id.
    ///
    /// # Errors
    /// The document is corrupt: nobody may be judged by it, and nothing is written over it.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, UdfError> {
        let Some(text) = self.folder.read(FILE)? else { return Ok(Vec::new()) };
        parse(&text).ok_or_else(|| {
            UdfError::raised(format!(
                "{FOLDER}/{FILE} is corrupt and nothing was written: inspect or restore it, then try again"
            ))
        })
    }

    pub(crate) fn entry(&self, app: &str) -> Result<Option<Entry>, UdfError> {
        Ok(self.entries()?.into_iter().find(|entry| entry.id == app))
    }

    /// The one way a task comes to own an app that has no owner: a task that works on it. Costs a look when the
    /// task owns it already.
    ///
    /// # Errors
    /// Another task owns it; the text says whose it is and what to do.
    pub(crate) fn claim(&self, app: &str, task: &str) -> Result<(), UdfError> {
        let owned = |entry: &Entry| match entry.owner.as_str() {
            owner if owner == task => Ok(true),
            "" => Ok(false),
            owner => Err(UdfError::raised(format!(
                "the app `{app}` belongs to task {owner}: `ensure_owner` gives it to another"
            ))),
        };
        if self.entry(app)?.as_ref().map(owned).transpose()? == Some(true) {
            return Ok(());
        }
        self.change(app, |entry| {
            if !owned(entry)? {
                entry.owner = task.to_owned();
                entry.kept = false;
            }
            Ok(())
        })
    }

    /// Gives an app to a task, whoever had it (workflow-engine contract §10, ownership).
    pub(crate) fn bind(&self, app: &str, task: &str) -> Result<Bound, UdfError> {
        self.change(app, |entry| {
            let before = std::mem::replace(&mut entry.owner, task.to_owned());
            entry.kept = false;
            Ok(Bound {
                previous: Some(before).filter(|before| !before.is_empty() && before != task),
            })
        })
    }

    /// A port for the app: the wanted one, else the one it had, else one that is free and no other app's.
    ///
    /// # Errors
    /// The wanted port is taken, or none is free.
    pub(crate) fn port(&self, app: &str, wanted: Option<u16>) -> Result<u16, UdfError> {
        let entries = self.entries()?;
        let is_other =
            |port: u16| entries.iter().any(|entry| entry.id != app && entry.port == Some(port));
        let known = entries.iter().find(|entry| entry.id == app).and_then(|entry| entry.port);
        let port = match wanted {
            Some(port) if is_free(port) => port,
            Some(port) => {
                return Err(UdfError::raised(format!(
                    "port {port} is taken by another program: free it, or name another in `serve.port`"
                )));
            }
            None => match known.filter(|port| is_free(*port) && !is_other(*port)) {
                Some(port) => port,
                None => (0..32)
                    .find_map(|_| free().filter(|port| !is_other(*port)))
                    .ok_or_else(|| UdfError::raised("the machine has no free port for the app"))?,
            },
        };
        if known != Some(port) {
            self.change(app, |entry| {
                entry.port = Some(port);
                Ok(())
            })?;
        }
        Ok(port)
    }

    /// Changes one entry under the lock, making it if there is none.
    pub(crate) fn change<T>(
        &self,
        app: &str,
        change: impl FnOnce(&mut Entry) -> Result<T, UdfError>,
    ) -> Result<T, UdfError> {
        if !self.folder.exists()? {
            self.folder.create(&[], &[])?;
        }
        let mut guard = self
            .folder
            .lock(WAIT)?
            .ok_or_else(|| UdfError::raised("another process holds the list of apps; try again"))?;
        let mut entries = self.entries()?;
        let at = match entries.binary_search_by(|entry| entry.id.as_str().cmp(app)) {
            Ok(at) => at,
            Err(at) => {
                entries.insert(at, Entry { id: app.to_owned(), ..Entry::default() });
                at
            }
        };
        let before = entries[at].clone();
        let made = change(&mut entries[at])?;
        if entries[at] != before || before == (Entry { id: app.to_owned(), ..Entry::default() }) {
            guard.replace(FILE, &format!("{:#}\n", to_value(&entries)))?;
        }
        Ok(made)
    }

    /// Which of the running tasks own no app, in whatever state the app is. An unreadable registry judges nobody.
    pub(crate) fn ghosts(&self, running: &[&str]) -> Vec<String> {
        let entries = match self.entries() {
            Ok(entries) => entries,
            Err(error) => {
                self.ctx.error(&format!("nobody is judged: {error}"));
                return Vec::new();
            }
        };
        let owns = |task: &str| entries.iter().any(|entry| entry.owner == task);
        running.iter().filter(|task| !owns(task)).map(|task| (*task).to_owned()).collect()
    }
}

fn parse(text: &str) -> Option<Vec<Entry>> {
    let value: Value = text.parse().ok()?;
    let mut entries: Vec<Entry> = value
        .get("apps")?
        .as_array()?
        .iter()
        .map(|app| {
            let text = |key: &str| app.get(key).and_then(Value::as_str).map(str::to_owned);
            Some(Entry {
                id: text("id")?,
                owner: text("owner").unwrap_or_default(),
                port: app
                    .get("port")
                    .and_then(Value::as_u64)
                    .and_then(|port| u16::try_from(port).ok()),
                kept: app.get("kept").and_then(Value::as_bool).unwrap_or_default(),
                ready_at: text("ready_at").unwrap_or_default(),
            })
        })
        .collect::<Option<_>>()?;
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    Some(entries)
}

fn to_value(entries: &[Entry]) -> Value {
    let apps: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let Entry { id, owner, port, kept, ready_at } = entry;
            json!({"id": id, "owner": owner, "port": port, "kept": kept, "ready_at": ready_at})
        })
        .collect();
    json!({"apps": apps})
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn free() -> Option<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|it| it.local_addr())
        .ok()
        .map(|it| it.port())
}

#[cfg(test)]
mod tests {
    use sdk::testing::TestHost;

    use super::*;
    use crate::UDF;

    #[test]
    fn an_app_has_one_owner() {
        let host = TestHost::new();
        let ctx = host.context(UDF);
        let registry = Registry::open(&ctx).unwrap();
        registry.claim("a", "t1").unwrap();
        registry.claim("a", "t1").unwrap();
        let refused = registry.claim("a", "t2").unwrap_err();
        assert!(refused.message().contains("belongs to task t1"), "{refused}");
        assert_eq!(registry.ghosts(&["t1", "t2"]), ["t2"]);
        assert_eq!(registry.bind("a", "t2").unwrap(), Bound { previous: Some("t1".into()) });
        assert_eq!(registry.bind("a", "t2").unwrap(), Bound { previous: None });
        assert_eq!(registry.ghosts(&["t1", "t2"]), ["t1"]);
        assert!(registry.claim("a", "t1").is_err());
        registry.claim("b", "t1").unwrap();
        assert!(registry.ghosts(&["t1", "t2"]).is_empty());
    }

    #[test]
    fn a_corrupt_registry_judges_nobody_and_is_kept() {
        let host = TestHost::new();
        let ctx = host.context(UDF);
        for text in ["{", "[]", r#"{"apps": [1]}"#, r#"{"apps": [{"owner": "t"}]}"#] {
            host.seed_file("living-ui/registry/apps.json", text);
            let registry = Registry::open(&ctx).unwrap();
            assert!(registry.ghosts(&["t1"]).is_empty(), "{text}");
            assert!(registry.claim("a", "t1").is_err() && registry.port("a", None).is_err());
            assert_eq!(host.file("living-ui/registry/apps.json").unwrap(), text);
        }
        assert!(host.lines().iter().any(|line| line.contains("nobody is judged")));
    }

    #[test]
    fn ports_stay_with_their_app() {
        let host = TestHost::new();
        let ctx = host.context(UDF);
        let registry = Registry::open(&ctx).unwrap();
        let first = registry.port("a", None).unwrap();
        assert_eq!(registry.port("a", None).unwrap(), first);
        assert_ne!(registry.port("b", None).unwrap(), first, "even while nobody listens");
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        let refused = registry.port("a", Some(first)).unwrap_err();
        assert!(refused.message().contains(&format!("port {first} is taken")));
        let moved = registry.port("a", None).unwrap();
        assert_ne!(moved, first);
        drop(taken);
        assert_eq!(registry.port("a", None).unwrap(), moved);
    }
}
