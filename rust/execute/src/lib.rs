//! A module for Node: `execute(request)` makes this process another program, with the same process id, as execve(2).
//! Node has that itself since version 22.15. `src/rights/execute.ts` is its only user.
//! The functions of Node: <https://nodejs.org/docs/latest-v20.x/api/n-api.html>
use std::ffi::{CStr, CString, c_char, c_void};
use std::io;
use std::ptr::{null, null_mut};

use serde::Deserialize;

type Env = *mut c_void;
type Value = *mut c_void;
type Status = i32;
type Callback = unsafe extern "C" fn(Env, *mut c_void) -> Value;

const OK: Status = 0;

unsafe extern "C" {
    fn napi_create_function(
        env: Env,
        name: *const c_char,
        length: usize,
        callback: Callback,
        data: *mut c_void,
        result: *mut Value,
    ) -> Status;
    fn napi_get_cb_info(
        env: Env,
        info: *mut c_void,
        count: *mut usize,
        arguments: *mut Value,
        this: *mut Value,
        data: *mut *mut c_void,
    ) -> Status;
    fn napi_get_value_string_utf8(env: Env, value: Value, to: *mut c_char, size: usize, length: *mut usize) -> Status;
    fn napi_throw_error(env: Env, code: *const c_char, message: *const c_char) -> Status;
}

/// What it becomes, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// The path of the program, and its arguments; the first one is its name.
    file: String,
    arguments: Vec<String>,
    /// The complete environment.
    environment: Vec<(String, String)>,
    /// Descriptors that stay open, besides those that are not to be closed anyway.
    keeps: Vec<i32>,
}

/// The value of the module is its function.
///
/// # Safety
/// Node calls it, once, when it loads the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn napi_register_module_v1(env: Env, exports: Value) -> Value {
    let mut function = null_mut();
    let name = c"execute".to_bytes();
    let status =
        unsafe { napi_create_function(env, name.as_ptr().cast(), name.len(), execute, null_mut(), &raw mut function) };
    if status == OK { function } else { exports }
}

/// Returns only when it has failed: then it throws.
unsafe extern "C" fn execute(env: Env, info: *mut c_void) -> Value {
    let done = unsafe { argument(env, info) }.and_then(|text| become_program(&text));
    if let Err(message) = done {
        let message = CString::new(message).unwrap_or_default();
        unsafe { napi_throw_error(env, null(), message.as_ptr()) };
    }
    null_mut()
}

unsafe fn argument(env: Env, info: *mut c_void) -> Result<String, String> {
    let (mut count, mut value) = (1, null_mut());
    let status = unsafe { napi_get_cb_info(env, info, &raw mut count, &raw mut value, null_mut(), null_mut()) };
    let mut length = 0;
    if status != OK || unsafe { napi_get_value_string_utf8(env, value, null_mut(), 0, &raw mut length) } != OK {
        return Err("execute: needs a text".into());
    }
    // And a zero.
    let mut bytes = vec![0u8; length + 1];
    let status =
        unsafe { napi_get_value_string_utf8(env, value, bytes.as_mut_ptr().cast(), bytes.len(), &raw mut length) };
    let text = CStr::from_bytes_until_nul(&bytes).map_err(|error| error.to_string())?;
    if status == OK { Ok(text.to_string_lossy().into_owned()) } else { Err("execute: the text cannot be read".into()) }
}

fn become_program(text: &str) -> Result<(), String> {
    let Request { file, arguments, environment, keeps } =
        serde_json::from_str(text).map_err(|error| format!("execute: {error}"))?;
    let path = c_string(file.clone())?;
    let arguments = arguments.into_iter().map(c_string).collect::<Result<Vec<_>, _>>()?;
    let variables = environment.into_iter().map(|(name, value)| c_string(format!("{name}={value}")));
    let variables = variables.collect::<Result<Vec<_>, _>>()?;
    for descriptor in keeps {
        // SAFETY: takes numbers only.
        if unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } < 0 {
            return Err(format!("descriptor {descriptor}: {}", io::Error::last_os_error()));
        }
    }
    // SAFETY: both lists end with null, and what they point to lives as long as this process is what it is.
    unsafe { libc::execve(path.as_ptr(), pointers(&arguments).as_ptr(), pointers(&variables).as_ptr()) };
    Err(format!("{file}: {}", io::Error::last_os_error()))
}

fn c_string(text: String) -> Result<CString, String> {
    CString::new(text).map_err(|error| format!("execute: {error}"))
}

fn pointers(words: &[CString]) -> Vec<*const c_char> {
    words.iter().map(|word| word.as_ptr()).chain([null()]).collect()
}
