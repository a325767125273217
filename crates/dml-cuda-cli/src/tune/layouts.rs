//! The layout of a reversal, and the file of layouts that `tune LAYOUTS.jsonl` reads.
//!
//! A layout is a descriptor without its data: the sizes, the axis along which elements change places, the strides of
//! input and output, and which dimensions have lengths of their own. For a batch of 2 sequences of 3 time steps with 4
//! features, each with its own length, a line is
//!
//! ```text
//! {"width": 4, "sizes": [2, 3, 4], "axis": 1, "in_strides": [12, 4, 1], "out_strides": [12, 4, 1], "length_sizes": [2, 1, 1]}
//! ```

use std::path::Path;

use dml_cuda::{BufferTensorDesc, Device, OperatorDesc, ReverseSubsequencesDesc, TensorDataType};
use serde::Deserialize;

use crate::model::file;
use crate::out::in_file;
use crate::schema;

/// A reversal. Strides are in elements; `length_sizes` has 1 where a length is shared.
#[derive(Clone, Debug, Deserialize)]
pub struct Layout {
    /// The name of a group of layouts, by which losses are printed.
    #[serde(default)]
    pub kind: String,
    /// Bytes of an element.
    pub width: u32,
    pub sizes: Vec<u32>,
    /// The dimension along which elements are reversed.
    pub axis: usize,
    /// Elements between neighbours of each dimension of the input.
    pub in_strides: Vec<u32>,
    pub out_strides: Vec<u32>,
    /// Earlier files of layouts say `len_sizes`.
    #[serde(alias = "len_sizes")]
    pub length_sizes: Vec<u32>,
}

impl Layout {
    /// The descriptor. The lengths are packed in the order of their dimensions, with stride 0 where one is shared.
    pub fn desc(&self) -> OperatorDesc {
        use TensorDataType::{UInt16, UInt32, UInt64, UInt8};
        let data_type = [UInt8, UInt16, UInt32, UInt64][self.width.ilog2() as usize];
        let packed = packed(&self.length_sizes, 0..self.length_sizes.len());
        let strides: Vec<u32> = self
            .length_sizes
            .iter()
            .zip(packed)
            .map(|(&size, stride)| if size > 1 { stride } else { 0 })
            .collect();
        let mut sizes = self.sizes.clone();
        sizes[self.axis] = 1;
        ReverseSubsequencesDesc {
            input_tensor: BufferTensorDesc::strided(data_type, &self.sizes, &self.in_strides),
            sequence_lengths_tensor: BufferTensorDesc::strided(UInt32, &sizes, &strides),
            output_tensor: BufferTensorDesc::strided(data_type, &self.sizes, &self.out_strides),
            axis: self.axis as u32,
        }
        .into()
    }

    /// How many elements the layout moves.
    pub fn elements(&self) -> u64 {
        self.sizes.iter().map(|&size| u64::from(size)).product()
    }

    /// The columns of a table of times.
    pub fn columns(&self) -> String {
        let Self {
            kind,
            width,
            sizes,
            axis,
            in_strides,
            out_strides,
            length_sizes,
        } = self;
        let lists = [in_strides, out_strides, length_sizes].map(|numbers| joined(numbers));
        let (sizes, lists) = (joined(sizes), lists.join(","));
        format!("{kind},{width},{sizes},{axis},{lists}")
    }

    /// Checks what a descriptor cannot express.
    fn check(&self) -> Result<(), &'static str> {
        let rank = self.sizes.len();
        let lists = [&self.in_strides, &self.out_strides, &self.length_sizes];
        if lists.iter().any(|list| list.len() != rank)
            || self.axis >= rank
            || ![1, 2, 4, 8].contains(&self.width)
        {
            return Err(
                "must have lists of one length, an axis below that, and a width of 1, 2, 4 or 8",
            );
        }
        // The kind is a column of the CSV, which has no quotes.
        if self.kind.contains([',', '"', '\n']) {
            return Err("the kind must have no comma and no quote");
        }
        for (d, &size) in self.length_sizes.iter().enumerate() {
            if size != 1 && (d == self.axis || size != self.sizes[d]) {
                return Err("length_sizes must be 1 along the axis, and 1 or the size elsewhere");
            }
        }
        Ok(())
    }
}

/// A list as a column has it, such as `64x200x512`.
fn joined(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    numbers.join("x")
}

/// Reads one layout per line, as JSON objects. Empty lines are skipped.
pub fn read(path: &Path) -> Result<Vec<Layout>, String> {
    let text = file::read_input(path, "").and_then(file::text);
    let text = text.map_err(|error| in_file(path)(error.to_string()))?;
    let mut layouts = Vec::new();
    for (n, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        if !line.trim().is_empty() {
            let layout =
                read_line(line).map_err(|error| in_file(path)(format!("line {n}: {error}")))?;
            layouts.push(layout);
        }
    }
    if layouts.is_empty() {
        return Err(in_file(path)("there are no layouts".to_owned()));
    }
    Ok(layouts)
}

/// Reads and checks one layout. The last check is that of the library, whose rules the command does not repeat.
fn read_line(line: &str) -> Result<Layout, String> {
    // The caller names the file's line. For serde every line is the first one.
    let layout: Layout = serde_json::from_str(line).map_err(|error| {
        schema::plain_message(&error).replace(" at line 1 column", " at column")
    })?;
    layout.check()?;
    Device::cpu()
        .create_operator(layout.desc())
        .map_err(|error| error.to_string())?;
    Ok(layout)
}

/// The strides of a tensor whose memory has the dimensions in that order, outermost first.
pub fn packed(sizes: &[u32], order: impl DoubleEndedIterator<Item = usize>) -> Vec<u32> {
    let (mut strides, mut next) = (vec![0; sizes.len()], 1u32);
    for d in order.rev() {
        strides[d] = next;
        next = next.saturating_mul(sizes[d]);
    }
    strides
}
