//! Whether the resources of a model fit, before any of them is filled.

use std::path::{Component, Path, PathBuf};

use dml_cuda::Device;

use crate::model::resource::Resource;
use crate::out::shown_path;

/// Bytes of a resource that are printed or written at a time.
pub const PART: u64 = 1 << 20;

const MACHINE: &str = "what this machine has free";

/// Fails if the resources together need more memory than the device has, or the host has free.
pub fn check(resources: &[(String, Resource)], device: &Device) -> Result<(), String> {
    let needed = resources.iter().fold(0u64, |sum, (_, resource)| {
        sum.saturating_add(resource.size_in_bytes)
    });
    let (most, place) = match device.cuda_properties() {
        Some(properties) => (
            properties.total_memory,
            format!("the memory of {}", device.name()),
        ),
        // What was read is freed resource by resource. A command has one part beside the resources.
        None => {
            let (most, place) = free(needed.saturating_add(PART));
            (most.saturating_sub(PART), place)
        }
    };
    if needed > most {
        return Err(format!(
            "the resources are {needed} bytes together, but must be at most {most}, {place}"
        ));
    }
    Ok(())
}

/// Bytes that the host can hand out, as far as they are wanted, and what has them.
fn free(wanted: u64) -> (u64, String) {
    let (known, place) = available("").unwrap_or((u64::MAX, MACHINE.to_owned()));
    // A limit of the process, which no file tells.
    let fits = |bytes: u64| {
        usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok())
    };
    if wanted > known || fits(wanted) {
        return (known, place);
    }
    // A power of two that fits.
    (
        (20..63)
            .rev()
            .map(|bit| 1 << bit)
            .find(|&bytes| fits(bytes))
            .unwrap_or(0)
            .min(known),
        MACHINE.to_owned(),
    )
}

/// The memory that Linux reports as available: to the machine, or to a cgroup of this process that has less.
/// `root` comes before the paths of files.
fn available(root: &str) -> Option<(u64, String)> {
    // Paths need not be UTF-8.
    let read = |path: &str| {
        Some(String::from_utf8_lossy(&std::fs::read(format!("{root}{path}")).ok()?).into_owned())
    };
    let machine = figure(&read("/proc/meminfo")?, "MemAvailable:")? << 10;
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let in_mount = |mount: &str| {
        let fields: Vec<&str> = mount.split(' ').collect();
        let (top, point) = (unescaped(fields.get(3)?), unescaped(fields.get(4)?));
        let (controller, files) = match fields[fields.iter().position(|field| *field == "-")? + 1..]
        {
            ["cgroup2", ..] => ("", ["memory.max", "memory.current", "inactive_file "]),
            ["cgroup", .., options] if options.split(',').any(|option| option == "memory") => (
                "memory",
                [
                    "memory.limit_in_bytes",
                    "memory.usage_in_bytes",
                    "total_inactive_file ",
                ],
            ),
            _ => return None,
        };
        let group = groups.lines().find_map(|line| {
            let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
            controllers
                .split(',')
                .any(|found| found == controller)
                .then_some(group)
        })?;
        let seen = format!("{root}{point}");
        let below = below_mount(Path::new(&seen), Path::new(&top), Path::new(group));
        let group: PathBuf = Path::new(&point)
            .components()
            .chain(below.components())
            .collect();
        let all = group
            .ancestors()
            .take_while(|group| group.starts_with(&point));
        all.filter_map(|group| left(group, files, read)).min()
    };
    let mounts = read("/proc/self/mountinfo").unwrap_or_default();
    mounts
        .lines()
        .filter_map(in_mount)
        .chain([(machine, MACHINE.to_owned())])
        .min_by_key(|(bytes, _)| *bytes)
}

/// The path from a mount point to the cgroup of this process. `top` is the cgroup of the mount point and `group` that of
/// the process, as its namespace shows them. Empty where the mount point is all that is known.
fn below_mount(point: &Path, top: &Path, group: &Path) -> PathBuf {
    if let Ok(below) = group.strip_prefix(top) {
        return below.to_owned();
    }
    // A container may see only a part of the tree, and not its own name.
    let is_above = |part| matches!(part, Component::RootDir | Component::ParentDir);
    if !top.components().all(is_above) {
        return PathBuf::new();
    }
    // The mount point is above the root of the namespace, which hides the names in between.
    let steps_up = |path: &Path| {
        let parents = path
            .components()
            .filter(|part| *part == Component::ParentDir);
        parents.count()
    };
    let hidden = steps_up(top).saturating_sub(steps_up(group));
    let shown: PathBuf = group.components().filter(|part| !is_above(*part)).collect();
    own_group(point, hidden, &shown)
        .and_then(|found| Some(found.strip_prefix(point).ok()?.to_owned()))
        .unwrap_or_default()
}

/// The folder of this process's cgroup: `hidden` levels below a folder, and then at the path `shown`.
fn own_group(folder: &Path, hidden: usize, shown: &Path) -> Option<PathBuf> {
    if hidden == 0 {
        let group = folder.join(shown);
        let processes = std::fs::read_to_string(group.join("cgroup.procs")).ok()?;
        let own = std::process::id().to_string();
        return processes.lines().any(|line| line == own).then_some(group);
    }
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    for entry in folders {
        if let Some(found) = own_group(&entry.path(), hidden - 1, shown) {
            return Some(found);
        }
    }
    None
}

/// The memory that a cgroup may still use: pages of files that are not in use are given up before memory is short.
fn left(
    group: &Path,
    [most, now, cache]: [&str; 3],
    read: impl Fn(&str) -> Option<String>,
) -> Option<(u64, String)> {
    let read = |name| read(group.join(name).to_str()?);
    let cache = read("memory.stat")
        .and_then(|stat| figure(&stat, cache))
        .unwrap_or(0);
    let used = figure(&read(now)?, "")?.saturating_sub(cache);
    Some((
        figure(&read(most)?, "")?.saturating_sub(used),
        format!("what the cgroup {} leaves", shown_path(group)),
    ))
}

/// The number of a line that begins with a name.
fn figure(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().trim_end_matches(" kB").parse().ok()
}

/// A path as the list of mounts has it.
fn unescaped(path: &&str) -> String {
    let escapes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    escapes
        .iter()
        .fold((*path).to_owned(), |path, (escape, character)| {
            path.replace(escape, character)
        })
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    const MIB: u64 = 1 << 20;

    const VERSION_2: &str = "24 1 0:21 / /proc rw - proc proc rw\n\
        30 23 0:26 / /sys/fs/cgroup rw shared:4 master:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    /// systemd in its hybrid mode: version 2 has no limits.
    const VERSION_1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    /// A cgroup with the MiB of its limit, what is in use, and what of that are files that nothing reads.
    type Group = (&'static str, Option<u64>, u64, u64);

    /// The memory that a process can have, in MiB, on a machine with 48 GiB left.
    fn on_a_machine(mounts: &str, own: &str, groups: &[Group]) -> (u64, String) {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: String| {
            let path = root.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write(
            "/proc/meminfo",
            "MemTotal:       67108864 kB\nMemAvailable:   50331648 kB\n".to_owned(),
        );
        write("/proc/self/mountinfo", mounts.to_owned());
        write("/proc/self/cgroup", own.to_owned());
        for (group, most, now, cache) in groups {
            let (now, cache) = (now * MIB, cache * MIB);
            // This process is in the group that is named `own`.
            let process = if group.ends_with("/own") {
                std::process::id()
            } else {
                1
            };
            write(&format!("{group}/cgroup.procs"), format!("1\n{process}\n"));
            let most = |none: &str| most.map_or(none.to_owned(), |most| (most * MIB).to_string());
            if group.contains("memory") {
                write(
                    &format!("{group}/memory.limit_in_bytes"),
                    most("9223372036854771712") + "\n",
                );
                write(
                    &format!("{group}/memory.usage_in_bytes"),
                    format!("{now}\n"),
                );
                // Only the total counts the groups inside this one.
                write(
                    &format!("{group}/memory.stat"),
                    format!("inactive_file 0\ntotal_inactive_file {cache}\n"),
                );
            } else {
                write(&format!("{group}/memory.max"), most("max") + "\n");
                write(&format!("{group}/memory.current"), format!("{now}\n"));
                write(
                    &format!("{group}/memory.stat"),
                    format!("anon 7\ninactive_file {cache}\nactive_file 8\n"),
                );
            }
        }
        let (bytes, place) = available(root.path().to_str().expect("UTF-8")).expect("it is known");
        (bytes / MIB, place)
    }

    /// `unshare -C`: the mount is older than the namespace, and its root is above that of the namespace.
    #[test]
    fn a_namespace_hides_names_between_the_mount_and_its_root() {
        const TOP: &str = "/sys/fs/cgroup";
        const OWN: &str = "/sys/fs/cgroup/a/own";
        const OTHER: &str = "/sys/fs/cgroup/a/other";
        let two_up = VERSION_2.replace("0:26 / ", "0:26 /../.. ");
        let sibling = VERSION_2.replace("0:26 / ", "0:26 /../sibling ");
        let old = VERSION_1.replace("0:32 / ", "0:32 /../.. ");
        let own = (OWN, Some(800), 700, 0);
        let other = (OTHER, Some(10), 10, 0);
        let deeper = "/sys/fs/cgroup/a/b/own";
        let in_memory = "/sys/fs/cgroup/memory/a/own";
        let cases: [(&str, &str, &[Group], u64, &str); 8] = [
            (&two_up, "0::/\n", &[own, other], 100, OWN),
            (&two_up, "0::/\n", &[own, (TOP, Some(50), 0, 0)], 50, TOP),
            (
                &two_up,
                "0::/own\n",
                &[(deeper, Some(800), 700, 0)],
                100,
                deeper,
            ),
            (&two_up, "0::/../own\n", &[own, other], 100, OWN),
            (&two_up, "0::/../../a/own\n", &[own, other], 100, OWN),
            // The process's group is not to be found, or not below the mount point.
            (&two_up, "0::/\n", &[other, (TOP, Some(50), 0, 0)], 50, TOP),
            (&sibling, "0::/\n", &[own, (TOP, Some(50), 0, 0)], 50, TOP),
            (
                &old,
                "4:memory:/\n",
                &[(in_memory, Some(800), 700, 0)],
                100,
                in_memory,
            ),
        ];
        for (mounts, cgroup, groups, bytes, place) in cases {
            assert_eq!(
                on_a_machine(mounts, cgroup, groups),
                (bytes, format!("what the cgroup {place} leaves")),
                "{mounts}{cgroup}{groups:?}"
            );
        }
    }

    #[test]
    fn the_group_with_the_smallest_rest_counts_and_files_in_memory_are_free() {
        const TOP: &str = "/sys/fs/cgroup";
        const SLICE: &str = "/sys/fs/cgroup/user.slice";
        const JOB: &str = "/sys/fs/cgroup/user.slice/my job";
        const ALL: &str = "/sys/fs/cgroup/memory";
        const SLURM: &str = "/sys/fs/cgroup/memory/slurm";
        const STEP: &str = "/sys/fs/cgroup/memory/slurm/step_0";
        let in_docker = VERSION_1.replace("0:32 / ", "0:32 /docker/1f ");
        let together = VERSION_1
            .replace("rw,cpu\n", "rw,cpu,cpuacct\n")
            .replace("rw,memory\n", "rw,hugetlb,memory\n");
        let escaped = "30 23 0:26 / /my\\040groups rw - cgroup2 none rw\n";
        let (own, hybrid) = (
            "0::/user.slice/my job\n",
            "5:cpu:/\n4:memory:/slurm/step_0\n0::/\n",
        );
        let cases: [(&str, &str, &[Group], u64, &str); 15] = [
            ("", "", &[], 49_152, ""),
            (VERSION_2, own, &[], 49_152, ""),
            (
                VERSION_2,
                own,
                &[(SLICE, None, 900, 0), (JOB, None, 900, 0)],
                49_152,
                "",
            ),
            (VERSION_2, own, &[(JOB, Some(90_000), 900, 0)], 49_152, ""),
            // A container of 4 GiB that has read large files.
            (
                VERSION_2,
                "0::/\n",
                &[(TOP, Some(4096), 4000, 3500)],
                3596,
                TOP,
            ),
            (
                VERSION_2,
                own,
                &[(SLICE, None, 900, 0), (JOB, Some(1000), 100, 0)],
                900,
                JOB,
            ),
            (
                VERSION_2,
                own,
                &[(SLICE, Some(2000), 1900, 50), (JOB, Some(1000), 100, 0)],
                150,
                SLICE,
            ),
            (VERSION_2, own, &[(JOB, Some(1000), 1001, 0)], 0, JOB),
            // The group is gone, and the one around it is there.
            (
                VERSION_2,
                "0::/user.slice/x (deleted)\n",
                &[(SLICE, Some(1000), 600, 0)],
                400,
                SLICE,
            ),
            (
                VERSION_1,
                hybrid,
                &[
                    (ALL, None, 9000, 8000),
                    (SLURM, None, 0, 0),
                    (STEP, Some(800), 700, 600),
                ],
                700,
                STEP,
            ),
            (
                VERSION_1,
                hybrid,
                &[(SLURM, Some(800), 700, 0), (STEP, Some(800), 0, 0)],
                100,
                SLURM,
            ),
            (
                &in_docker,
                "4:memory:/docker/1f\n",
                &[(ALL, Some(800), 700, 0)],
                100,
                ALL,
            ),
            // A namespace: the process does not see the name of the mount.
            (
                &in_docker,
                "4:memory:/\n",
                &[(ALL, Some(800), 700, 0)],
                100,
                ALL,
            ),
            (
                &together,
                "9:hugetlb,memory:/slurm\n",
                &[(SLURM, Some(800), 700, 0)],
                100,
                SLURM,
            ),
            (
                escaped,
                "0::/a\n",
                &[("/my groups/a", Some(800), 700, 0)],
                100,
                "/my groups/a",
            ),
        ];
        for (mounts, own, groups, bytes, place) in cases {
            let place = if place.is_empty() {
                MACHINE.to_owned()
            } else {
                format!("what the cgroup {place} leaves")
            };
            assert_eq!(
                on_a_machine(mounts, own, groups),
                (bytes, place),
                "{mounts}{own}{groups:?}"
            );
        }
    }
}
