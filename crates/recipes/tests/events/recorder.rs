//! A recorder that keeps all metrics, by their names as Prometheus writes them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

type Values = Arc<Mutex<BTreeMap<String, Vec<f64>>>>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    values: Values,
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
    fn describe_counter(&self, _key: KeyName, _unit: Option<Unit>, _text: SharedString) {}

    fn describe_gauge(&self, _key: KeyName, _unit: Option<Unit>, _text: SharedString) {}

    fn describe_histogram(&self, _key: KeyName, _unit: Option<Unit>, _text: SharedString) {}

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
