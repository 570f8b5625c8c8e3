//! Number forms of the app-store contract §4.

/// A double in the store's form: shortest digits that read back as the same value; plain with a
/// fraction for a decimal exponent in -4..=15, else scientific with a sign and two exponent digits.
/// What JSON has no form for is written as `NaN`, `Infinity`, `-Infinity`.
pub fn float_text(value: f64) -> String {
    let mut out = String::new();
    push_float(value, &mut out);
    out
}

pub(crate) fn push_float(value: f64, out: &mut String) {
    if !value.is_finite() {
        out.push_str(match value {
            v if v.is_nan() => "NaN",
            v if v > 0.0 => "Infinity",
            _ => "-Infinity",
        });
        return;
    }
    let mut buffer = ryu::Buffer::new();
    let shortest = buffer.format_finite(value);
    let (sign, rest) = match shortest.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", shortest),
    };
    out.push_str(sign);
    let (mantissa, exponent) = match rest.split_once('e') {
        // The exponent of a double has three digits at most, so it always parses.
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().unwrap_or(0)),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // All digits in a row, and where the decimal point stands in them.
    let mut digits = String::with_capacity(24);
    digits.push_str(whole);
    digits.push_str(fraction);
    let leading = digits.len() - digits.trim_start_matches('0').len();
    if leading == digits.len() {
        out.push_str("0.0");
        return;
    }
    let point = whole.len() as i32 + exponent - leading as i32;
    let digits = digits[leading..].trim_end_matches('0');
    let scientific = point - 1;
    if !(-4..=15).contains(&scientific) {
        out.push_str(&digits[..1]);
        if digits.len() > 1 {
            out.push('.');
            out.push_str(&digits[1..]);
        }
        out.push('e');
        out.push(if scientific < 0 { '-' } else { '+' });
        let size = scientific.unsigned_abs();
        if size < 10 {
            out.push('0');
        }
        out.push_str(&size.to_string());
    } else if point <= 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', point.unsigned_abs() as usize));
        out.push_str(digits);
    } else {
        let point = point as usize;
        if digits.len() <= point {
            out.push_str(digits);
            out.extend(std::iter::repeat_n('0', point - digits.len()));
            out.push_str(".0");
        } else {
            out.push_str(&digits[..point]);
            out.push('.');
            out.push_str(&digits[point..]);
        }
    }
}

/// Writes the text of a JSON number in the store's form.
pub(crate) fn push_number(raw: &str, float: bool, out: &mut String) {
    if !float {
        out.push_str(if raw == "-0" { "0" } else { raw });
        return;
    }
    match raw.parse::<f64>() {
        Ok(value) if value.is_finite() => push_float(value, out),
        // Beyond the range of a double: any other form would be another value (S16).
        _ => out.push_str(raw),
    }
}

/// Whether a number with fraction or exponent is beyond the range of a double.
pub(crate) fn overflows(raw: &str) -> bool {
    // Without an exponent it takes more than 300 digits to get there.
    let candidate = raw.len() > 300 || raw.bytes().any(|b| b == b'e' || b == b'E');
    candidate && raw.parse::<f64>().is_ok_and(f64::is_infinite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_the_form_of_the_contract() {
        for (value, want) in [
            (1.0, "1.0"),
            (100000.0, "100000.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e-7, "1.5e-07"),
            (1e100, "1e+100"),
            (-0.0, "-0.0"),
            (123.456, "123.456"),
            (9007199254740993.0, "9007199254740992.0"),
            (12345678901234567.0, "1.2345678901234568e+16"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float_text(value), want);
        }
    }
}
