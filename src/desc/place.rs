//! The field path of a value in a descriptor, and a caller's names for its tensors.

use std::fmt;

use super::operator_type::{OperatorType, TensorRole};

/// A field of a descriptor, or an operator or one of its tensors as a whole.
///
/// ```
/// use dml_cuda::{lowering::Names, validate, FeatureLevel, TensorDataType, TensorRole};
/// # let tensor = |data_type, sizes: &[u32]| dml_cuda::BufferTensorDesc::packed(data_type, sizes);
/// let desc = dml_cuda::ReverseSubsequencesDesc {
///     input_tensor: tensor(TensorDataType::Float32, &[2, 0]),
/// #   sequence_lengths_tensor: tensor(TensorDataType::UInt32, &[2, 1]),
/// #   output_tensor: tensor(TensorDataType::Float32, &[2, 0]),
///     axis: 1,
///     // …
/// };
/// let broken = validate(&desc.into(), FeatureLevel::HIGHEST).unwrap_err();
/// let error = &broken.errors()[0];
/// let place = error.place;
/// assert_eq!((place.tensor, place.field, place.index), (Some(TensorRole::Input), Some("Sizes"), Some(1)));
/// assert_eq!(error.place.to_string(), "ReverseSubsequencesDesc.InputTensor.Sizes[1]");
/// let names = Names::new("axis", &[(TensorRole::Input, "x")]);
/// assert_eq!(error.message(&names), "x.Sizes[1] is 0, but must be at least 1 (tensor.sizes.nonzero)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Place {
    /// The operator that the descriptor is of.
    pub operator: OperatorType,
    /// The tensor; `None` for a field of the operator.
    pub tensor: Option<TensorRole>,
    /// The field, by DirectML's name.
    pub field: Option<&'static str>,
    /// The index in a field that is a list.
    pub index: Option<usize>,
}

impl Place {
    pub(crate) fn of(
        operator: OperatorType,
        tensor: Option<TensorRole>,
        field: &'static str,
    ) -> Self {
        Self {
            operator,
            tensor,
            field: Some(field),
            index: None,
        }
    }

    pub(crate) fn nth(self, index: usize) -> Self {
        Self {
            index: Some(index),
            ..self
        }
    }

    /// The field path with other names for the tensors. Only DirectML's names are preceded by the descriptor's name.
    pub fn with_names(&self, names: &Names<'_>) -> String {
        let operator =
            (*names == Names::DIRECTML || self.field.is_none()).then(|| self.operator.desc_name());
        let field = self.field.map(|field| {
            if names.are_attributes {
                attribute(field)
            } else {
                field
            }
        });
        let parts = [operator, self.tensor.map(|tensor| names.of(tensor)), field];
        let path = parts.into_iter().flatten().collect::<Vec<_>>().join(".");
        self.index
            .map_or(path.clone(), |index| format!("{path}[{index}]"))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_names(&Names::DIRECTML))
    }
}

/// A caller's names for the tensors of an operator and its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names<'a> {
    /// By the number of a role.
    tensors: [&'a str; 3],
    pub(crate) axis: &'a str,
    /// Whether fields have the names of an array's attributes in Python.
    are_attributes: bool,
}

impl<'a> Names<'a> {
    /// DirectML's own, which errors show by themselves.
    pub const DIRECTML: Self = {
        let tensors = [
            TensorRole::Input.name(),
            TensorRole::SequenceLengths.name(),
            TensorRole::Output.name(),
        ];
        Self {
            tensors,
            axis: "axis",
            are_attributes: false,
        }
    };

    /// Names of the axis and of tensors. The others have DirectML's.
    pub const fn new(axis: &'a str, mut tensors: &[(TensorRole, &'a str)]) -> Self {
        let mut names = Self {
            axis,
            ..Self::DIRECTML
        };
        while let [(role, name), others @ ..] = tensors {
            names.tensors[*role as usize] = name;
            tensors = others;
        }
        names
    }

    /// Names that call fields as Python does the attributes of an array: `x.shape[1]`.
    pub const fn with_attributes(self) -> Self {
        Self {
            are_attributes: true,
            ..self
        }
    }

    pub(crate) fn of(&self, tensor: TensorRole) -> &'a str {
        self.tensors[tensor as usize]
    }
}

/// The attribute of an array in Python for a field.
fn attribute(field: &'static str) -> &'static str {
    match field {
        "Sizes" => "shape",
        "Strides" => "strides",
        "DimensionCount" => "ndim",
        "DataType" => "dtype",
        _ => field,
    }
}
