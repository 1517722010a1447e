//! How RocksDB is set up: for point reads of many keys at once, and writes in large batches.

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DBCompressionType, LogLevel, Options, WriteBufferManager,
};

/// The memory that all instances of a process share: blocks that were read, with indexes and filters, and what has been
/// written and is not in a file yet.
#[derive(Clone)]
pub struct RocksMemory {
    blocks: Cache,
    buffers: WriteBufferManager,
    /// Of one instance.
    buffer: usize,
}

impl RocksMemory {
    /// Memory of so many bytes for so many instances. What is written takes a part of it, and the rest is for blocks.
    pub fn new(bytes: usize, instances: usize) -> Self {
        let blocks = Cache::new_lru_cache(bytes);
        let buffered = bytes / BUFFERED_PART;
        let buffers =
            WriteBufferManager::new_write_buffer_manager_with_cache(buffered, false, blocks.clone());
        // Two at a time: one takes writes while the other goes to a file.
        let buffer = (buffered / instances.max(1) / 2).clamp(SMALLEST_BUFFER, LARGEST_BUFFER);
        Self { blocks, buffers, buffer }
    }

    /// Options of an instance.
    pub(crate) fn database(&self) -> Options {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_write_buffer_manager(&self.buffers);
        options.set_max_background_jobs(2);
        options.set_max_open_files(OPEN_FILES);
        // What it tells of itself, of which the errors come back from calls.
        options.set_log_level(LogLevel::Error);
        options.set_keep_log_file_num(1);
        options.set_max_log_file_size(1 << 20);
        options
    }

    /// Options of a table.
    pub(crate) fn table(&self) -> Options {
        let mut options = Options::default();
        options.set_write_buffer_size(self.buffer);
        options.set_max_write_buffer_number(3);
        options.set_memtable_whole_key_filtering(true);
        options.set_memtable_prefix_bloom_ratio(0.05);
        options.set_level_compaction_dynamic_level_bytes(true);
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_block_based_table_factory(&self.blocks());
        options
    }

    /// Without partitions the index and the filter of a file would be read as a whole for one key, once they do not fit
    /// into memory.
    fn blocks(&self) -> BlockBasedOptions {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&self.blocks);
        blocks.set_block_size(BLOCK);
        blocks.set_format_version(5);
        blocks.set_bloom_filter(BLOOM_BITS, false);
        blocks.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
        blocks.set_partition_filters(true);
        blocks.set_metadata_block_size(BLOCK);
        blocks.set_cache_index_and_filter_blocks(true);
        blocks.set_cache_index_and_filter_blocks_with_high_priority(true);
        blocks.set_pin_top_level_index_and_filter(true);
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
        blocks
    }
}

/// The part of the memory that writes may take, as a divisor.
const BUFFERED_PART: usize = 3;
/// Bytes of a write buffer.
const SMALLEST_BUFFER: usize = 1 << 20;
const LARGEST_BUFFER: usize = 64 << 20;
/// Bytes of a block: a read of one key costs a block, and keys that are read together are seldom in the same one.
const BLOCK: usize = 4 << 10;
/// Bits of the filter for a key: one key in a hundred is looked for in vain.
const BLOOM_BITS: f64 = 10.0;
/// Files that an instance keeps open.
const OPEN_FILES: i32 = 1000;
