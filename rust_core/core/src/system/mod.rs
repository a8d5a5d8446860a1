//! Services of the operating system and of the allocator, and the files and arrays of the index.

pub(crate) mod allocator;
pub(crate) mod arrays;
pub(crate) mod checked_file;
pub mod failpoint;
pub(crate) mod huge_pages;
pub(crate) mod mapped;
pub(crate) mod temp_file;
