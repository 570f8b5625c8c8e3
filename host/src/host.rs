//! [`Host`]: everything that runs, without a way in from outside. HTTP and the command line are such ways.

use std::sync::Arc;
use std::time::SystemTime;

use core_store::{Store, StoreOptions};

use crate::agent::Bell;
use crate::config::{Config, Durability};
use crate::dispatch::Dispatcher;
use crate::error::HostError;
use crate::lane::{Inline, Lanes, WorkerOptions, Workers};
use crate::plugins::Catalog;
use crate::plugins::engine::Engine;
use crate::program;
use crate::sql::Sql;

/// Everything that runs. Cheap to clone; all clones are the one host.
#[derive(Debug, Clone)]
pub struct Host {
    /// What it was told.
    pub config: Arc<Config>,
    /// Which operations there are.
    pub catalog: Arc<Catalog>,
    /// The one door to them.
    pub dispatcher: Arc<Dispatcher>,
    /// Statements over operations.
    pub sql: Arc<Sql>,
    /// The state, for what is not an operation: the doctor's look at locks and corrupt collections.
    pub store: Store,
    /// When it was started.
    pub started: SystemTime,
    /// Rung when an agent task of this host may have something to do.
    pub bell: Bell,
    engine: Engine,
}

impl Host {
    /// Starts it and returns at once: folders are walked, and operations built and loaded, on a thread behind.
    /// [`Catalog::progress`] tells how far that is.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(config: Config) -> Result<Self, HostError> {
        let started = SystemTime::now();
        let config = Arc::new(config);
        let catalog = Arc::new(Catalog::default());
        let durability = match config.durability {
            Durability::Full => core_store::Durability::Full,
            Durability::Os => core_store::Durability::Os,
        };
        let options = StoreOptions { durability };
        #[cfg(debug_assertions)]
        let store = crate::fault::store(options);
        #[cfg(not(debug_assertions))]
        let store = Store::open(options);
        let workers = program::own().map(|program| {
            Workers::new(WorkerOptions {
                program,
                cap: config.workers,
                idle: config.worker_idle,
                memory: config.worker_memory,
                synced: config.durability == Durability::Full,
                in_flight: config.in_flight,
            })
        });
        let workers = workers.transpose().map_err(|error| HostError::Internal {
            message: "the thread that looks after workers could not be started".to_owned(),
            detail: error.to_string(),
        })?;
        let inline = Inline::new(store.clone(), config.in_flight);
        let lane = Box::new(Lanes::new(inline, workers));
        let dispatcher = Arc::new(Dispatcher::new(Arc::clone(&catalog), lane, &config));
        let engine = Engine::spawn(&config, &catalog)?;
        let sql = Arc::new(Sql::of_config(&config));
        Ok(Self { config, catalog, dispatcher, sql, store, started, bell: Bell::default(), engine })
    }

    /// Ends a build that is running. Calls that are running go on to their end.
    pub fn stop(&self) {
        self.engine.stop();
    }
}
