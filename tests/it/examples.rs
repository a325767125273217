//! Runs the programs of examples/. Each compares its results.

#[path = "../../examples/broken_rules.rs"]
mod broken_rules;
#[path = "../../examples/fill_and_reverse.rs"]
mod fill_and_reverse;
#[path = "../../examples/raw_pointers.rs"]
mod raw_pointers;
#[path = "../../examples/specialized.rs"]
mod specialized;
#[path = "../../examples/streams_and_graph.rs"]
mod streams_and_graph;

#[test]
fn every_example_runs() -> Result<(), Box<dyn std::error::Error>> {
    broken_rules::main();
    fill_and_reverse::main()?;
    streams_and_graph::main()?;
    specialized::main()?;
    raw_pointers::main()?;
    Ok(())
}
