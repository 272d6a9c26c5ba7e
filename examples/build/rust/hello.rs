// SPDX-License-Identifier: BSD-3-Clause
// The smallest job in Rust: every rank gives its number, and all get the sum.
#[allow(dead_code, non_camel_case_types, non_snake_case, non_upper_case_globals)]
#[allow(improper_ctypes)]
mod dscomm {
    include!(concat!(env!("OUT_DIR"), "/dscomm.rs"));
}
use dscomm::*;
use std::ffi::CStr;
use std::ptr;

// The failure of a call, if it is one
fn check(status: dscomm_status_t) -> Result<(), String> {
    if status >= DSCOMM_OK {
        return Ok(());
    }
    let sentence = unsafe { CStr::from_ptr(dscomm_last_error()) };
    Err(sentence.to_string_lossy().into_owned())
}

fn main() -> Result<(), String> {
    let mut world = ptr::null_mut();
    let mut sum: i32 = 0;

    unsafe {
        check(dscomm_init(ptr::null(), &mut world))?;
        let rank: i32 = dscomm_group_rank(world);
        check(dscomm_all_reduce(
            world,
            &rank as *const i32 as *const _,
            &mut sum as *mut i32 as *mut _,
            1,
            DSCOMM_INT32,
            DSCOMM_SUM,
            ptr::null_mut(),
        ))?;
        println!("rank {} of {}: the sum of all ranks is {}", rank, dscomm_group_size(world), sum);
        check(dscomm_finalize(world))
    }
}
