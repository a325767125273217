//! Runs the case table on every device through the safe API: the bytes equal the oracle's, and guards and gaps are
//! untouched.

use dml_cuda_testing::{assert_same, cases, devices, run};

#[test]
fn the_case_table_is_right_on_every_device() {
    let table = cases::all();
    assert_eq!(table.len(), 5284);
    let expected: Vec<Vec<u8>> = table.iter().map(cases::Case::expected).collect();
    for device in devices("the_case_table_is_right_on_every_device") {
        for (case, expected) in table.iter().zip(&expected) {
            assert_same(&device, &case.desc, &run(&device, &case.desc, &case.inputs(), case.in_place), expected);
        }
        eprintln!("{} cases are right on {device}", table.len());
    }
}
