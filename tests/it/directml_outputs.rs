//! Every recorded execution of DirectML leaves the same bytes here, gaps and guards included, on every device. If the
//! contract differs from DirectML, the oracle decides.

use dml_cuda::{BufferBinding, Device};
use dml_cuda_testing::{assert_same, devices, recorded, GUARD, POISON};

/// Runs a record exactly as DirectML was run: inputs from offset 0, the output at `out_offset`.
fn run(device: &Device, record: &recorded::Record) -> Vec<u8> {
    let output = record.desc.output_tensor();
    let total = output.total_tensor_size_in_bytes;
    let offset = record.out_offset();
    let out = device
        .create_buffer(offset + total + GUARD as u64)
        .expect("the records are small");
    out.write(0, &vec![POISON; out.size_in_bytes() as usize])
        .expect("the range is the buffer");
    let inputs: Vec<BufferBinding> = record
        .inputs()
        .iter()
        .map(|bytes| {
            BufferBinding::whole(
                &device
                    .create_buffer_from(bytes)
                    .expect("the records are small"),
            )
        })
        .collect();
    let stream = device.create_stream().expect("a stream");
    let operator = dml_cuda_testing::compile(device, &record.desc);
    let table = operator
        .bind(&inputs, BufferBinding::range(&out, offset, total))
        .expect("the record was executed");
    table.dispatch(&stream).expect("the record was executed");
    stream.synchronize().expect("the record was executed");
    out.to_vec().expect("bytes are whole")
}

#[test]
fn every_recorded_output_is_reproduced() {
    let records = recorded::outputs();
    assert_eq!(records.len(), 421);
    for device in devices("every_recorded_output_is_reproduced") {
        for record in &records {
            assert_same(
                &device,
                &record.desc,
                &run(&device, record),
                &record.required(),
            );
        }
    }
}

#[test]
fn the_oracle_agrees_with_every_record_that_does_not_depart() {
    let cpu = Device::cpu();
    let mut departures = 0;
    for record in recorded::outputs() {
        let recorded = record.bytes("out_bytes").expect("output bytes");
        if record.departs() {
            departures += usize::from(record.contract() != recorded);
        } else {
            assert_same(&cpu, &record.desc, &record.contract(), &recorded);
        }
    }
    // The departures are real: DirectML's bytes differ from its page, or it flushed denormals.
    assert_eq!(departures, 40);
}
