//! A recorder that keeps all metrics, by their names as Prometheus writes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

type Values = Arc<Mutex<BTreeMap<String, Vec<f64>>>>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    values: Values,
    described: Arc<Mutex<BTreeSet<String>>>,
}

impl Recorded {
    /// A counter's or a gauge's value.
    pub(crate) fn value(&self, key: &str) -> f64 {
        let values = self.values(key);
        *values
            .last()
            .unwrap_or_else(|| panic!("no {key}: {self:?}"))
    }

    /// A histogram's values.
    pub(crate) fn values(&self, key: &str) -> Vec<f64> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(key).cloned().unwrap_or_default()
    }

    /// The names of the metrics that were recorded and not described.
    pub(crate) fn undescribed(&self) -> Vec<String> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let described = self
            .described
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let names = values.keys().filter_map(|key| key.split('{').next());
        let names = names.filter(|name| !described.contains(*name));
        names.map(str::to_owned).collect()
    }

    fn describe(&self, key: &KeyName) {
        let described = self.described.lock();
        let mut described = described.unwrap_or_else(PoisonError::into_inner);
        described.insert(key.as_str().to_owned());
    }

    fn of(&self, key: &Key) -> Arc<Metric> {
        let labels = key.labels();
        let labels: Vec<String> = labels
            .map(|label| format!("{}={:?}", label.key(), label.value()))
            .collect();
        let labels = match labels.as_slice() {
            [] => String::new(),
            labels => format!("{{{}}}", labels.join(",")),
        };
        Arc::new(Metric {
            key: format!("{}{labels}", key.name()),
            values: self.values.clone(),
        })
    }
}

struct Metric {
    key: String,
    values: Values,
}

impl Metric {
    fn change(&self, change: impl FnOnce(&mut Vec<f64>)) {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        change(values.entry(self.key.clone()).or_default());
    }

    fn add(&self, value: f64) {
        self.change(|values| {
            let before = values.last().copied().unwrap_or_default();
            *values = vec![before + value];
        });
    }
}

impl CounterFn for Metric {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }

    fn absolute(&self, value: u64) {
        self.change(|values| *values = vec![value as f64]);
    }
}

impl GaugeFn for Metric {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, value: f64) {
        self.change(|values| *values = vec![value]);
    }
}

impl HistogramFn for Metric {
    fn record(&self, value: f64) {
        self.change(|values| values.push(value));
    }
}

impl Recorder for Recorded {
    fn describe_counter(&self, key: KeyName, _unit: Option<Unit>, _text: SharedString) {
        self.describe(&key);
    }

    fn describe_gauge(&self, key: KeyName, _unit: Option<Unit>, _text: SharedString) {
        self.describe(&key);
    }

    fn describe_histogram(&self, key: KeyName, _unit: Option<Unit>, _text: SharedString) {
        self.describe(&key);
    }

    fn register_counter(&self, key: &Key, _metadata: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.of(key))
    }

    fn register_gauge(&self, key: &Key, _metadata: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.of(key))
    }

    fn register_histogram(&self, key: &Key, _metadata: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.of(key))
    }
}
