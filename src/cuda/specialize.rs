//! Folds the parameters of a launch into the PTX of its kernel. The driver compiles PTX when it loads it, and then
//! knows every size: it folds divisions, branches on the rank, and loops over dimensions.

use std::collections::HashMap;

/// Bytes of the addresses, with which every structure of parameters begins.
const ADDRESSES: usize = 24;

/// Replaces loads of `params`, the structure that a kernel takes, by its values, and the size of the thread block by
/// `threads`. Loads of addresses stay, and those from a computed place, such as an element of an array. `ptx` has one
/// entry point, and is written as nvcc does: one instruction in a line.
pub(crate) fn specialize(ptx: &str, params: &[u64], threads: u32) -> String {
    let bytes: &[u8] = bytemuck::cast_slice(params);
    let addresses = addresses(ptx);
    let mut specialized = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        let constants = match Instruction::of(line) {
            Some(Instruction {
                opcode: "mov.u32" | "mov.b32",
                to,
                from: "%ntid.x",
            }) => constant(to, threads.into()),
            Some(Instruction { opcode, to, from }) if opcode.starts_with("ld.param.") => {
                offset(from, &addresses)
                    .filter(|&at| at >= ADDRESSES)
                    .and_then(|at| constants(opcode, to, bytes.get(at..)?))
            }
            _ => None,
        };
        match constants {
            Some(constants) => specialized.push_str(&constants),
            None => specialized.extend([line, "\n"]),
        }
    }
    specialized
}

/// An instruction that writes registers: `opcode to, from;`.
struct Instruction<'a> {
    opcode: &'a str,
    /// A register, or several with commas between them.
    to: &'a str,
    from: &'a str,
}

impl<'a> Instruction<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let text = line.trim().strip_suffix(';')?;
        let predicate = if text.starts_with('@') {
            text.find(char::is_whitespace)? + 1
        } else {
            0
        };
        let (opcode, operands) =
            text.split_at(predicate + text[predicate..].find(char::is_whitespace)?);
        let operands = operands.trim();
        let (to, from) = match operands.strip_prefix('{') {
            Some(vector) => vector.split_once("},")?,
            None => operands.split_once(',')?,
        };
        to.starts_with('%').then(|| Self {
            opcode,
            to,
            from: from.trim(),
        })
    }
}

/// The registers that always have an address in the parameters, with its offset.
fn addresses(ptx: &str) -> HashMap<&str, usize> {
    let instructions = || ptx.lines().filter_map(Instruction::of);
    let (mut writes, mut addresses) = (HashMap::<&str, u32>::new(), HashMap::new());
    instructions()
        .flat_map(|written| written.to.split(", "))
        .for_each(|to| *writes.entry(to).or_default() += 1);
    for Instruction { opcode, to, from } in
        instructions().filter(|written| writes.get(written.to) == Some(&1))
    {
        let offset = match opcode {
            "mov.b64" | "mov.u64" => offset(from, &addresses),
            "add.s64" => from
                .split_once(", ")
                .and_then(|(base, step)| offset(&format!("{base}+{step}"), &addresses)),
            _ => None,
        };
        addresses.extend(offset.map(|offset| (to, offset)));
    }
    addresses
}

/// The offset in the parameters of an address: `name_param_0` or a register of `addresses`, and `+` with a number; in
/// brackets where it is loaded from.
fn offset(address: &str, addresses: &HashMap<&str, usize>) -> Option<usize> {
    let address = address.trim_matches(['[', ']']);
    let (base, step) = address.split_once('+').unwrap_or((address, "0"));
    let base = if base.ends_with("_param_0") {
        0
    } else {
        *addresses.get(base)?
    };
    base.checked_add_signed(step.parse().ok()?)
}

/// The replacement of a load: a `mov` for each register, of the values at the beginning of `bytes`.
fn constants(opcode: &str, to: &str, bytes: &[u8]) -> Option<String> {
    let size = match opcode.rsplit('.').next()? {
        "u32" | "b32" | "f32" => 4,
        "u64" | "b64" | "f64" => 8,
        _ => return None,
    };
    let values = bytes.chunks_exact(size).map(|bytes| {
        bytes
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte))
    });
    let registers: Vec<&str> = to.split(',').collect();
    (bytes.len() >= size * registers.len()).then(|| {
        registers
            .iter()
            .zip(values)
            .map(|(register, value)| constant(register.trim(), value))
            .collect()
    })?
}

fn constant(register: &str, value: u64) -> Option<String> {
    let kind = register.trim_end_matches(|digit: char| digit.is_ascii_digit());
    match kind {
        "%r" => Some(format!("\tmov.u32 \t{register}, {value};\n")),
        "%rd" => Some(format!("\tmov.u64 \t{register}, {value};\n")),
        "%f" => Some(format!("\tmov.f32 \t{register}, 0f{value:08X};\n")),
        "%fd" => Some(format!("\tmov.f64 \t{register}, 0d{value:016X};\n")),
        _ => None,
    }
}

#[cfg(all(test, in_repository))]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::cuda::kernels::{only, FAMILIES};
    use crate::dml_cuda_testing::repository;

    /// Loads of parameters: the offset, which is `None` if the address is computed, the bytes and the registers.
    fn loads(ptx: &str) -> Vec<(Option<usize>, usize, usize)> {
        let addresses = addresses(ptx);
        let loads = ptx
            .lines()
            .filter_map(Instruction::of)
            .filter(|load| load.opcode.starts_with("ld.param."));
        let load = |Instruction { opcode, to, from }| {
            let bits: usize = opcode.rsplit('.').next().expect("a type")[1..]
                .parse()
                .expect("a width");
            let registers = to.split(',').count();
            (offset(from, &addresses), bits / 8 * registers, registers)
        };
        loads.map(load).collect()
    }

    /// The entry points that may be specialized: the name, and the PTX in kernels/prebuilt.
    fn entries() -> impl Iterator<Item = (&'static str, String)> {
        FAMILIES
            .iter()
            .flat_map(|family| family.all())
            .filter_map(|entry| {
                let file = repository(&format!("kernels/prebuilt/{}.ptx", entry.file));
                let ptx = only(
                    &std::fs::read_to_string(file).expect("the prebuilt PTX"),
                    entry.name,
                );
                entry.specializable.then_some((entry.name, ptx))
            })
    }

    /// `UPDATE_GOLDEN=1 cargo test --lib golden` writes the file.
    #[test]
    fn the_loads_of_every_entry_point_are_those_in_the_golden_file() {
        let mut found = "entry point: loads of constants, loads that stay because the bytes vary, because the address is computed\n".to_owned();
        for (name, ptx) in entries() {
            let before = loads(&ptx);
            let after = loads(&specialize(&ptx, &[0; 80], 256));
            let computed = after.iter().filter(|(at, ..)| at.is_none()).count();
            let (folded, vary) = (before.len() - after.len(), after.len() - computed);
            let _ = writeln!(found, "{name}: {folded}, {vary}, {computed}");
        }
        let path = repository("tests/golden/specialized.txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
            std::fs::write(&path, &found).expect("the golden file can be written");
        }
        assert_eq!(found, std::fs::read_to_string(&path).unwrap_or_default());
    }

    /// Each value that is folded changes its line, and nothing else changes the text but the size of the thread block.
    #[test]
    fn the_text_depends_on_what_it_folds_and_on_nothing_else() {
        for (name, ptx) in entries() {
            let of =
                |params: &[u8], threads| specialize(&ptx, bytemuck::cast_slice(params), threads);
            let (mut folded, mut others) =
                (bytemuck::cast_slice(&[0u64; 80]).to_vec(), vec![1; 640]);
            let mut values = 0;
            for (at, size, registers) in loads(&ptx) {
                let Some(at) = at.filter(|&at| at >= ADDRESSES) else {
                    continue;
                };
                folded[at..at + size].fill(1);
                others[at..at + size].fill(0);
                values += registers;
            }
            let base = of(&[0; 640], 256);
            assert_eq!(of(&others, 256), base, "{name}");
            assert_eq!(of(&others, 128) != base, ptx.contains("%ntid.x"), "{name}");
            let changed = of(&folded, 256);
            let changed = base
                .lines()
                .zip(changed.lines())
                .filter(|(before, after)| before != after)
                .count();
            assert_eq!(changed, values, "{name}");
        }
    }

    #[test]
    fn registers_that_are_written_twice_are_no_addresses() {
        let ptx = "\tmov.b64 \t%rd1, k_param_0;\n\tadd.s64 \t%rd2, %rd1, 24;\n\t@%p1 mov.u64 \t%rd2, %rd3;\n\tld.param.u32 \t%r1, [%rd2+4];\n\tld.param.v2.u32 \t{%r2, %r3}, [%rd1+32];\n";
        let expected = ptx.replace(
            "\tld.param.v2.u32 \t{%r2, %r3}, [%rd1+32];\n",
            "\tmov.u32 \t%r2, 5;\n\tmov.u32 \t%r3, 6;\n",
        );
        assert_eq!(specialize(ptx, &[1, 2, 3, 4, 5 | 6 << 32], 1), expected);
    }
}
