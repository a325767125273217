//! Descriptors as keys, names that are read as they are written, and errors that `?` converts.

use std::collections::HashSet;

use dml_cuda::lowering::{range_count, RangeError};
use dml_cuda::{
    CudaError, Device, DirectMlVersion, Element, Error, FeatureLevel, OperatorDesc, OperatorType,
    Rule, ScalarUnion, SequenceElement, TensorDataType,
};
use dml_cuda_testing::fill;

#[test]
fn descriptors_are_keys_by_the_bits_of_their_scalars() {
    let delta = ScalarUnion::Float32(1.0);
    let of = |start| {
        fill(
            TensorDataType::Float32,
            &[4],
            ScalarUnion::Float32(start),
            delta,
        )
        .into()
    };
    let keys: HashSet<OperatorDesc> = [0.0, -0.0, f32::NAN, f32::NAN].map(of).into();
    assert_eq!(keys.len(), 3);
    assert_ne!(ScalarUnion::UInt8(1), ScalarUnion::Int8(1));
}

#[test]
fn any_element_is_the_delta_of_its_sequence() {
    fn count<T: SequenceElement>(start: T) -> Result<Vec<T>, Error> {
        dml_cuda::fill_value_sequence(&Device::cpu(), &[3], start, start)
    }
    fn bits(element: impl Element) -> u64 {
        ScalarUnion::to_bits(element.into())
    }
    assert_eq!(count(2i16), Ok(vec![2, 4, 6]));
    assert_eq!((bits(-1i8), bits(1f64)), (0xff, 1f64.to_bits()));
}

#[test]
fn operators_and_rules_are_read_as_they_are_written() {
    for operator in OperatorType::ALL {
        let name = operator.to_string();
        assert_eq!(
            [name.as_str(), &name["DML_OPERATOR_".len()..]].map(str::parse),
            [Ok(*operator), Ok(*operator)]
        );
    }
    for rule in Rule::ALL {
        assert_eq!(rule.to_string().parse(), Ok(*rule));
    }
}

/// Parses a text that nothing accepts.
fn parse<T: std::str::FromStr>() -> Result<(), Error>
where
    Error: From<T::Err>,
{
    "?".parse::<T>()?;
    Ok(())
}

#[test]
fn every_error_converts() {
    let parsed = [
        parse::<OperatorType>(),
        parse::<Rule>(),
        parse::<FeatureLevel>(),
        parse::<TensorDataType>(),
        parse::<DirectMlVersion>(),
        parse::<dml_cuda::GpuTarget>(),
    ];
    for result in parsed {
        assert!(result.is_err_and(|error| error.to_string().contains("`?`")));
    }
    let nan = || range_count([0.0, f64::NAN, 1.0]).map_err(Error::from);
    assert!(matches!(
        nan(),
        Err(Error::Range(RangeError::NotFinite { .. }))
    ));
    assert_eq!(nan(), nan());
    let _: fn(CudaError) -> Error = Error::from;
}
