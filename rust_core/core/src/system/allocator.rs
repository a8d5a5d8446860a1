//! Returns freed memory to the system.
#![expect(
    unsafe_code,
    reason = "one call of the C library, which has no safe form"
)]

/// Gives freed memory back to the system. Does nothing where the allocator is not glibc's, which keeps free pages in
/// the middle of its heaps until it is told.
pub(crate) fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function takes no pointer, locks the arenas that it walks, and may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
