//! Tensors in NumPy files.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use anfora::ir::{DType, Element, Literal, element_count};
use half::f16;
use npyz::{AutoSerialize, Deserialize, NpyFile, Order, TypeStr, WriterBuilder};

/// Reads a `.npy` file.
///
/// # Errors
/// If it cannot be read, is no NumPy file, or has elements that no element type of ours stands for.
pub(crate) fn read(path: &Path) -> Result<Literal, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let size = file.metadata().map_or(u64::MAX, |m| m.len());
    let npy = NpyFile::new(BufReader::new(file)).map_err(|e| e.to_string())?;
    let npyz::DType::Plain(ty) = npy.dtype() else { return Err("structured arrays are not tensors".to_string()) };
    let shape = npy.shape().iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
    let shape = shape.map_err(|_| "the array is too large".to_string())?;
    let elements = element_count(&shape).ok_or("the array is too large")?;
    // A header may claim any shape: nothing is allocated that the file does not hold.
    if elements as u64 > size {
        return Err(format!("the header claims {elements} elements, but the file has {size} bytes"));
    }
    if npy.order() == Order::Fortran && shape.len() > 1 {
        return Err("the array is in Fortran order; save it with numpy.ascontiguousarray".to_string());
    }
    match describe(&ty).as_str() {
        "b1" => elements_of::<bool>(npy, &shape),
        "i1" => elements_of::<i8>(npy, &shape),
        "i2" => elements_of::<i16>(npy, &shape),
        "i4" => elements_of::<i32>(npy, &shape),
        "i8" => elements_of::<i64>(npy, &shape),
        "u1" => elements_of::<u8>(npy, &shape),
        "u2" => elements_of::<u16>(npy, &shape),
        "u4" => elements_of::<u32>(npy, &shape),
        "u8" => elements_of::<u64>(npy, &shape),
        "f2" => elements_of::<f16>(npy, &shape),
        "f4" => elements_of::<f32>(npy, &shape),
        "f8" => elements_of::<f64>(npy, &shape),
        other => Err(format!("elements of type {other} are not supported")),
    }
}

/// Kind and size of the elements, without the byte order, which npyz sees to.
fn describe(ty: &TypeStr) -> String {
    ty.to_string().trim_matches('\'').trim_start_matches(['<', '>', '|', '=']).to_string()
}

fn elements_of<T: Element + Deserialize>(npy: NpyFile<impl Read>, shape: &[usize]) -> Result<Literal, String> {
    let data = npy.data::<T>().map_err(|e| format!("{e:?}"))?;
    let elements = data.collect::<Result<Vec<T>, _>>().map_err(|e| e.to_string())?;
    Literal::from_elements(shape, &elements).map_err(|e| e.to_string())
}

/// Whether NumPy has an element type that stands for this one.
pub(crate) fn can_write(dtype: DType) -> bool {
    dtype.has_kernels() && dtype != DType::BFloat16
}

/// Writes a `.npy` file.
///
/// # Errors
/// If it cannot be written, or NumPy has no such element type.
pub(crate) fn write(path: &Path, literal: &Literal) -> Result<(), String> {
    match literal.dtype() {
        DType::Bool => write_elements::<bool>(path, literal),
        DType::Int8 => write_elements::<i8>(path, literal),
        DType::Int16 => write_elements::<i16>(path, literal),
        DType::Int32 => write_elements::<i32>(path, literal),
        DType::Int64 => write_elements::<i64>(path, literal),
        DType::UInt8 => write_elements::<u8>(path, literal),
        DType::UInt16 => write_elements::<u16>(path, literal),
        DType::UInt32 => write_elements::<u32>(path, literal),
        DType::UInt64 => write_elements::<u64>(path, literal),
        DType::Float16 => write_elements::<f16>(path, literal),
        DType::Float32 => write_elements::<f32>(path, literal),
        DType::Float64 => write_elements::<f64>(path, literal),
        other => Err(format!("NumPy has no element type for {other}")),
    }
}

fn write_elements<T: Element + AutoSerialize>(path: &Path, literal: &Literal) -> Result<(), String> {
    let elements = literal.elements::<T>().expect("the caller matched the element type");
    let shape: Vec<u64> = literal.shape().iter().map(|&d| d as u64).collect();
    let run = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut out).begin_nd()?;
        writer.extend(elements.iter().copied())?;
        writer.finish()?;
        out.flush()
    };
    run().map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_come_back_as_they_went() {
        let dir = std::env::temp_dir().join(format!("anfora-npy-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("t.npy");
        for literal in [
            Literal::from_elements(&[2, 3], &[1.0f32, -0.0, f32::NAN, 3.5, 4.0, 5.0]).unwrap(),
            Literal::from_elements(&[3], &[true, false, true]).unwrap(),
            Literal::scalar(i64::MIN),
            Literal::from_elements(&[0, 4], &[0u8; 0]).unwrap(),
            Literal::from_elements(&[2], &[f16::from_f32(1.5), f16::INFINITY]).unwrap(),
        ] {
            write(&path, &literal).unwrap();
            assert_eq!(read(&path).unwrap(), literal);
        }
        std::fs::write(&path, b"\x93NUMPY\x01\x00").unwrap();
        assert!(read(&path).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
