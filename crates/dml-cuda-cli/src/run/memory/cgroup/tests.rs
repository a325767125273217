//! Limits of cgroups in folders that look like `/proc` and `/sys/fs/cgroup`.

use super::*;

const MIB: u64 = 1 << 20;

const MOUNT_2: &str = "24 1 0:21 / /proc rw - proc proc rw\n\
    30 23 0:26 / /sys/fs/cgroup rw shared:4 master:9 - cgroup2 cgroup2 rw,nsdelegate\n";

/// systemd in its hybrid mode: version 2 has no limits.
const MOUNT_1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
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
    let Limit { bytes, place } =
        available(root.path().to_str().expect("UTF-8")).expect("it is known");
    (bytes / MIB, place)
}

/// `unshare -C`: the mount is older than the namespace, and its root is above that of the namespace.
#[test]
fn a_namespace_hides_names_between_the_mount_and_its_root() {
    const TOP: &str = "/sys/fs/cgroup";
    const OWN: &str = "/sys/fs/cgroup/a/own";
    const OTHER: &str = "/sys/fs/cgroup/a/other";
    let two_up = MOUNT_2.replace("0:26 / ", "0:26 /../.. ");
    let sibling = MOUNT_2.replace("0:26 / ", "0:26 /../sibling ");
    let old = MOUNT_1.replace("0:32 / ", "0:32 /../.. ");
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
    let in_docker = MOUNT_1.replace("0:32 / ", "0:32 /docker/1f ");
    let together = MOUNT_1
        .replace("rw,cpu\n", "rw,cpu,cpuacct\n")
        .replace("rw,memory\n", "rw,hugetlb,memory\n");
    let escaped = "30 23 0:26 / /my\\040groups rw - cgroup2 none rw\n";
    let (own, hybrid) = (
        "0::/user.slice/my job\n",
        "5:cpu:/\n4:memory:/slurm/step_0\n0::/\n",
    );
    let cases: [(&str, &str, &[Group], u64, &str); 15] = [
        ("", "", &[], 49_152, ""),
        (MOUNT_2, own, &[], 49_152, ""),
        (
            MOUNT_2,
            own,
            &[(SLICE, None, 900, 0), (JOB, None, 900, 0)],
            49_152,
            "",
        ),
        (MOUNT_2, own, &[(JOB, Some(90_000), 900, 0)], 49_152, ""),
        // A container of 4 GiB that has read large files.
        (
            MOUNT_2,
            "0::/\n",
            &[(TOP, Some(4096), 4000, 3500)],
            3596,
            TOP,
        ),
        (
            MOUNT_2,
            own,
            &[(SLICE, None, 900, 0), (JOB, Some(1000), 100, 0)],
            900,
            JOB,
        ),
        (
            MOUNT_2,
            own,
            &[(SLICE, Some(2000), 1900, 50), (JOB, Some(1000), 100, 0)],
            150,
            SLICE,
        ),
        (MOUNT_2, own, &[(JOB, Some(1000), 1001, 0)], 0, JOB),
        // The group is gone, and the one around it is there.
        (
            MOUNT_2,
            "0::/user.slice/x (deleted)\n",
            &[(SLICE, Some(1000), 600, 0)],
            400,
            SLICE,
        ),
        (
            MOUNT_1,
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
            MOUNT_1,
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
