//! Runs the case table on every device through the safe API: the bytes equal the oracle's, and guards and gaps are
//! untouched.

use dml_cuda_testing::{assert_same, cases, devices, in_threads, run};

#[test]
fn the_case_table_is_right_on_every_device() {
    let table = cases::all();
    assert_eq!(table.len(), 5284);
    for device in devices("the_case_table_is_right_on_every_device") {
        in_threads(table.len(), |n| {
            let case = &table[n];
            let found = run(&device, &case.desc, &case.inputs(), case.in_place);
            assert_same(&device, &case.desc, &found, &case.expected());
        });
        eprintln!("{} cases are right on {device}", table.len());
    }
}
