//! What an actor host and its starter tell each other, one JSON text to a line; `npm run contracts` writes
//! `src/contracts/starter.ts` from it, for `src/actors/service-process/starter.ts`.
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is the same for all processes. Told by whoever starts the actor host, not by the actor host.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// The launcher, which confines what it starts.
    pub launcher: PathBuf,
    /// None: processes have the user of the starter.
    #[serde(deserialize_with = "Option::deserialize")]
    pub users: Option<Users>,
    /// Where users in use are recorded.
    pub records: PathBuf,
    /// The socket of the actor host to which channels of processes are opened.
    pub channels: PathBuf,
    /// The folder of sockets that handlers see.
    pub handler_folder: PathBuf,
    /// The folder of those that only the actor host uses.
    pub object_folder: PathBuf,
    /// The folders in which files of sqlite services may be.
    pub sqlite_folders: Vec<PathBuf>,
    /// The programs, by the names that requests give them.
    pub programs: BTreeMap<String, Program>,
    /// The environment of all processes: they have no other variables.
    pub environment: BTreeMap<String, String>,
}

/// Ids of users and groups.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Users {
    pub first: u32,
    pub count: u32,
    pub group: u32,
    /// Besides that one.
    pub groups: Vec<u32>,
    /// The user and group of processes of sqlite services whose folder has no owner but root.
    pub sqlite: u32,
    /// The group of the processes that read object files.
    pub product: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Program {
    pub file: PathBuf,
    /// `{memoryMb}` stands for the limit of a process, MiB.
    pub arguments: Vec<String>,
    /// Data that it maps for itself, MiB.
    pub own_mb: u64,
    /// Whether it writes files, whose size it limits itself. It runs as the owner of their folder.
    pub writes_files: bool,
    /// Which it makes: `unix` or `internet`.
    pub sockets: String,
}

/// A message from the actor host.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Request {
    Start(Start),
    Kill { run: u64 },
    Look(Look),
}

/// What is there of the file of a sqlite service? The actor host may not see it itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Look {
    /// The number by which both know the question.
    pub look: u64,
    /// Which of `sqlite_folders` has it.
    pub folder: usize,
    pub file: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Start {
    /// The number by which both know the process.
    pub run: u64,
    /// The first line of its channel, which nobody else knows.
    pub channel: String,
    pub program: String,
    /// The id of the service, for the list of processes.
    pub service: String,
    /// What it may use besides what the program needs for itself, MiB.
    pub memory_mb: u64,
    /// Which of `sqlite_folders` has its file.
    pub sqlite_folder: Option<usize>,
    /// Whether it serves: then it has folders for its sockets.
    pub serves: bool,
}

/// A message to the actor host. `Ended` is the last about a process, and the only one about one that could not be
/// started.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Report {
    #[serde(rename_all = "camelCase")]
    Started {
        run: u64,
        pid: u32,
        /// That of the folders of its sockets.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    #[serde(rename_all = "camelCase")]
    Ended {
        run: u64,
        /// How, or why it was not started.
        how: String,
        /// The last that it printed.
        printed: String,
    },
    #[serde(rename_all = "camelCase")]
    Looked {
        look: u64,
        /// All of `sqlite_folders`, with links followed.
        folders: Vec<PathBuf>,
        /// Whether the one in question is a folder of root, who runs no services, and not one for all, as `/tmp` is.
        belongs_to_root: bool,
        exists: bool,
    },
}

impl Report {
    pub fn not_started(run: u64, why: String) -> Self {
        Self::Ended { run, how: why, printed: String::new() }
    }
}
