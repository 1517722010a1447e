//! Buckets of S3, and of what speaks its protocol.

use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use object_store::{
    BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    client::SpawnedReqwestConnector,
    path::Path as Key,
    prefix::PrefixStore,
};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::{StorageError, place::Place};

/// Opens what lies below a prefix of a bucket. Who asks, where and how is said by the environment, as for the other tools
/// of S3: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`,
/// `AWS_ALLOW_HTTP`; or by the role of the machine or pod. Nothing is asked of it yet.
pub(crate) fn open(bucket: &str, prefix: &str) -> Result<Arc<dyn ObjectStore>, StorageError> {
    // Fails if there is one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let refused = |problem: String| {
        let location = Place::S3 { bucket, prefix }.to_string();
        StorageError::Location { location, problem }
    };
    check_settings().map_err(refused)?;
    let network = network().map_err(|error| refused(format!("no thread for its connections: {error}")))?;
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retries());
    builder = builder.with_http_connector(SpawnedReqwestConnector::new(network));
    for (key, value) in
        [(ClientConfigKey::ConnectTimeout, "5 seconds"), (ClientConfigKey::Timeout, "30 seconds")]
    {
        let key = AmazonS3ConfigKey::Client(key);
        if builder.get_config_value(&key).is_none() {
            builder = builder.with_config(key, value);
        }
    }
    let store = builder.build().map_err(|error| refused(error.to_string()))?;
    let prefix = Key::parse(prefix).map_err(|error| refused(error.to_string()))?;
    Ok(Arc::new(PrefixStore::new(store, prefix)))
}

/// Refuses what the client would take and panic over.
fn check_settings() -> Result<(), String> {
    let set = |name: &str| std::env::var(name).ok().map(|value| (name.to_owned(), value));
    for (name, value) in
        ["AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3"].into_iter().filter_map(set)
    {
        let is_web = |url: &reqwest::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        if !reqwest::Url::parse(&value).is_ok_and(|url| is_web(&url)) {
            return Err(format!("{name} is `{value}`: expected an address such as `http://localhost:9000`"));
        }
    }
    for (name, value) in ["AWS_REGION", "AWS_DEFAULT_REGION"].into_iter().filter_map(set) {
        if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(format!("{name} is `{value}`: expected the name of a region such as `us-east-1`"));
        }
    }
    Ok(())
}

/// Where connections live: a thread of their own, for the life of the process. They are shared by all who ask, and in
/// the thread of any of these they would wait whenever it computes, and end when it does.
fn network() -> io::Result<Handle> {
    static NETWORK: OnceLock<Runtime> = OnceLock::new();
    if let Some(network) = NETWORK.get() {
        return Ok(network.handle().clone());
    }
    let mut builder = Builder::new_multi_thread();
    let network = builder.worker_threads(1).thread_name("storage").enable_all().build()?;
    Ok(NETWORK.get_or_init(|| network).handle().clone())
}

/// A request that fails is repeated for this long. The timeout of a checkpoint is above all of it.
fn retries() -> RetryConfig {
    let (init_backoff, max_backoff) = (Duration::from_millis(100), Duration::from_secs(5));
    let backoff = BackoffConfig { init_backoff, max_backoff, base: 2.0 };
    RetryConfig { backoff, max_retries: 8, retry_timeout: Duration::from_secs(45) }
}
