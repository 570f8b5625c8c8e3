//! [`Serving`]: the right to start and end the programs of one app, across processes.

use std::fs;
use std::time::Duration;

use sdk::prelude::*;

use crate::app::{App, busy};
use crate::process::{Process, Start};

/// Held while programs are started or ended; looking needs it not.
#[derive(Debug)]
pub(crate) struct Serving<'a, 'c> {
    pub(crate) app: &'a App<'c>,
    guard: FolderGuard<'a>,
}

impl<'a, 'c> Serving<'a, 'c> {
    /// Waits until nobody else starts or ends programs of this app.
    ///
    /// # Errors
    /// A launch that runs elsewhere takes longer than this waits.
    pub(crate) fn lock(app: &'a App<'c>, wait: Duration) -> Result<Self, UdfError> {
        if !app.run.exists()? {
            app.run.create(&[], &[])?;
        }
        let guard = app.run.lock(wait)?.ok_or_else(|| busy(&format!("the app `{}`", app.id)))?;
        Ok(Self { app, guard })
    }

    /// Starts a program whose record is `<name>.json` and whose log is `<name>.log`.
    ///
    /// # Errors
    /// It cannot be started; nothing is left of it.
    pub(crate) fn start(
        &mut self,
        name: &str,
        port: u16,
        argv: &[String],
        env: &[(String, String)],
        lease: Duration,
    ) -> Result<Process, String> {
        let text = |error: UdfError| error.to_string();
        let file = format!("{name}.json");
        let (directory, log) = self.paths(name).map_err(text)?;
        let planned = Process::planned(self.app.ctx, port);
        self.guard.replace(&file, &format!("{:#}\n", planned.to_value())).map_err(text)?;
        let start = Start { argv, env, directory: &directory, log: &log, lease };
        let started = planned.start(&start).inspect_err(|_| {
            let _stays_as_dead = self.guard.remove(&file);
        })?;
        self.guard.replace(&file, &format!("{:#}\n", started.to_value())).map_err(text)?;
        Ok(started)
    }

    /// Directory and log of a program.
    pub(crate) fn paths(&self, name: &str) -> Result<(String, String), UdfError> {
        Ok((self.app.sources_path()?, format!("{}/{name}.log", self.app.run.path()?)))
    }

    /// Adds the address to the record of a tunnel.
    pub(crate) fn addressed(&mut self, tunnel: &Process, address: &str) -> Result<(), UdfError> {
        let mut value = tunnel.to_value();
        value["address"] = address.into();
        self.guard.replace("tunnel.json", &format!("{value:#}\n"))
    }

    /// Writes a document of the run folder.
    pub(crate) fn put(&mut self, name: &str, text: &str) -> Result<(), UdfError> {
        self.guard.replace(name, text)
    }

    /// Ends the program of this name, if it is ours and runs; its record goes with it. False if something of it
    /// could not be ended.
    pub(crate) fn end(&mut self, name: &str) -> Result<bool, UdfError> {
        if let Some(process) = self.app.process(name)?
            && !process.end()
        {
            return Ok(false);
        }
        self.guard.remove(&format!("{name}.json"))?;
        Ok(true)
    }

    /// Ends tunnel and app.
    ///
    /// # Errors
    /// Something of them could not be ended.
    pub(crate) fn stop(&mut self) -> Result<bool, UdfError> {
        let ran = self.app.served()?.is_some();
        for name in ["tunnel", "serve"] {
            if !self.end(name)? {
                return Err(UdfError::raised(format!(
                    "the program `{name}` of the app `{}` cannot be ended",
                    self.app.id
                )));
            }
        }
        Ok(ran)
    }

    /// What a host that died right after a start did not write down; true if the app runs.
    pub(crate) fn settle(&mut self) -> Result<bool, UdfError> {
        for name in ["serve", "tunnel"] {
            let Some(process) = self.app.process(name)?.filter(|process| process.pid.is_none())
            else {
                continue;
            };
            if let Some(found) = process.found() {
                self.guard
                    .replace(&format!("{name}.json"), &format!("{:#}\n", found.to_value()))?;
            }
        }
        Ok(self.app.served()?.is_some())
    }
}

/// Whether a process among these listens on the port; `None` when the system does not tell.
pub(crate) fn listens(members: &[i32], port: u16) -> Option<bool> {
    let mut sockets = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let Ok(text) = fs::read_to_string(table) else { continue };
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, local, _, "0A", _, _, _, _, _, inode, ..] = fields.as_slice() else { continue };
            let is_port =
                local.rsplit_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
            if is_port == Some(port) {
                sockets.push(format!("socket:[{inode}]"));
            }
        }
    }
    if sockets.is_empty() {
        return None;
    }
    let is_held = |pid: &i32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files
            .filter_map(|file| fs::read_link(file.path()).ok())
            .any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
    };
    Some(members.iter().any(is_held))
}
