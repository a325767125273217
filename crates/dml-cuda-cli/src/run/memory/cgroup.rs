//! The memory that Linux leaves to this process: what the machine has available, or a cgroup with less.
//!
//! A container, a batch job and a service of systemd are cgroups: groups of processes with limits. Groups are folders
//! below a mount point, and each limit from the mount point down to this process's own group counts:
//!
//! ```text
//! /proc/self/mountinfo             the mount point, and which group is there
//! /proc/self/cgroup                the group of this process
//!
//! /sys/fs/cgroup                   memory.max  memory.current  memory.stat
//! └── user.slice                   memory.max  memory.current  memory.stat
//!     └── job.scope (this process) memory.max  memory.current  memory.stat
//! ```
//!
//! Version 2 has one tree. Version 1 has a tree for each controller, of which `memory` counts, and other names of files.
//! A machine may have both.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{Limit, MACHINE};
use crate::out::shown_path;

/// The files of a group in one version of cgroups.
struct Files {
    /// The file with the most bytes that the group may use.
    limit: &'static str,
    /// The file with the bytes that it uses.
    used: &'static str,
    /// The line of `memory.stat` that counts pages of files which are not in use.
    inactive: &'static str,
}

const VERSION_1: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    // Only the total counts the groups inside of a group.
    inactive: "total_inactive_file ",
};

const VERSION_2: Files = Files {
    limit: "memory.max",
    used: "memory.current",
    inactive: "inactive_file ",
};

/// A mounted tree of groups with limits of memory.
struct Mount {
    /// The folder where it is mounted.
    point: String,
    /// The group that is at the mount point, as the namespace of this process shows it.
    top: String,
    /// Its name in `/proc/self/cgroup`, which is empty for version 2.
    controller: &'static str,
    files: Files,
}

/// The memory that Linux reports as available to this process. `root` comes before the paths of files.
pub fn available(root: &str) -> Option<Limit> {
    let machine = Limit {
        bytes: figure(&read(root, "/proc/meminfo")?, "MemAvailable:")? << 10,
        place: MACHINE.to_owned(),
    };
    let mounts = read(root, "/proc/self/mountinfo").unwrap_or_default();
    let groups = read(root, "/proc/self/cgroup").unwrap_or_default();
    let in_mounts = mounts
        .lines()
        .filter_map(|line| lowest_in_mount(root, &parse_mount(line)?, &groups));
    in_mounts.chain([machine]).min_by_key(|limit| limit.bytes)
}

/// The text of a file. Paths in it need not be UTF-8.
fn read(root: &str, path: &str) -> Option<String> {
    let bytes = fs::read(format!("{root}{path}")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A line of `/proc/self/mountinfo`, such as `30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw`. Returns none
/// for other file systems and other controllers.
fn parse_mount(line: &str) -> Option<Mount> {
    let fields: Vec<&str> = line.split(' ').collect();
    // The number of fields before the hyphen varies.
    let hyphen = fields.iter().position(|field| *field == "-")?;
    let (controller, files) = match fields[hyphen + 1..] {
        ["cgroup2", ..] => ("", VERSION_2),
        ["cgroup", .., options] if options.split(',').any(|option| option == "memory") => {
            ("memory", VERSION_1)
        }
        _ => return None,
    };
    Some(Mount {
        top: unescaped(fields.get(3)?),
        point: unescaped(fields.get(4)?),
        controller,
        files,
    })
}

/// The lowest limit from the mount point down to this process's group. The outer group of two equal ones.
fn lowest_in_mount(root: &str, mount: &Mount, groups: &str) -> Option<Limit> {
    let (point, top) = (Path::new(&mount.point), Path::new(&mount.top));
    let group = own_name(groups, mount.controller)?;
    let below = below_mount(
        Path::new(&format!("{root}{}", mount.point)),
        top,
        Path::new(group),
    );
    let own: PathBuf = point.components().chain(below.components()).collect();
    let mut lowest: Option<Limit> = None;
    for group in own.ancestors() {
        if !group.starts_with(point) {
            break;
        }
        if let Some(limit) = left_in_group(root, group, &mount.files) {
            if lowest
                .as_ref()
                .is_none_or(|lowest| limit.bytes <= lowest.bytes)
            {
                lowest = Some(limit);
            }
        }
    }
    lowest
}

/// The group of this process by a controller, from `/proc/self/cgroup`: `4:memory:/a/b`, or `0::/a/b` of version 2.
fn own_name<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        let mut controllers = controllers.split(',');
        controllers
            .any(|found| found == controller)
            .then_some(group)
    })
}

/// The path from a mount point to the cgroup of this process. `top` is the cgroup of the mount point and `group` that of
/// the process, as its namespace shows them. Empty where the mount point is all that is known.
fn below_mount(point: &Path, top: &Path, group: &Path) -> PathBuf {
    if let Ok(below) = group.strip_prefix(top) {
        return below.to_owned();
    }
    // A container may see only a part of the tree, and not its own name.
    if !top.components().all(|part| is_above(&part)) {
        return PathBuf::new();
    }
    // The mount point is above the root of the namespace, which hides the names in between.
    let hidden = steps_up(top).saturating_sub(steps_up(group));
    let shown: PathBuf = group.components().filter(|part| !is_above(part)).collect();
    match own_group(point, hidden, &shown) {
        Some(found) => found
            .strip_prefix(point)
            .unwrap_or(Path::new(""))
            .to_owned(),
        None => PathBuf::new(),
    }
}

/// Whether a part of a path leads out of the namespace.
fn is_above(part: &Component) -> bool {
    matches!(part, Component::RootDir | Component::ParentDir)
}

/// How often a path goes up.
fn steps_up(path: &Path) -> usize {
    let parts = path.components();
    parts.filter(|part| *part == Component::ParentDir).count()
}

/// The folder of this process's cgroup: `hidden` levels below a folder, and then at the path `shown`.
fn own_group(folder: &Path, hidden: usize, shown: &Path) -> Option<PathBuf> {
    if hidden == 0 {
        let group = folder.join(shown);
        let processes = fs::read_to_string(group.join("cgroup.procs")).ok()?;
        let own = std::process::id().to_string();
        return processes.lines().any(|line| line == own).then_some(group);
    }
    let entries = fs::read_dir(folder).ok()?.flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    for entry in folders {
        if let Some(found) = own_group(&entry.path(), hidden - 1, shown) {
            return Some(found);
        }
    }
    None
}

/// The memory that a group may still use. Pages of files that are not in use do not count as used, because Linux gives
/// them up before memory is short.
fn left_in_group(root: &str, group: &Path, files: &Files) -> Option<Limit> {
    let read = |name: &str| read(root, group.join(name).to_str()?);
    let inactive = read("memory.stat")
        .and_then(|stat| figure(&stat, files.inactive))
        .unwrap_or(0);
    let used = figure(&read(files.used)?, "")?.saturating_sub(inactive);
    // Without a limit it is the word `max`, which is no number.
    let limit = figure(&read(files.limit)?, "")?;
    Some(Limit {
        bytes: limit.saturating_sub(used),
        place: format!("what the cgroup {} leaves", shown_path(group)),
    })
}

/// The number of a line that begins with a name.
fn figure(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().trim_end_matches(" kB").parse().ok()
}

/// A path without the escapes of the list of mounts.
fn unescaped(path: &str) -> String {
    path.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

#[cfg(all(test, unix))]
mod tests;
