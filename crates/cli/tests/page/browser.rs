//! A headless Chromium, which its DevTools protocol directs over a pipe.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The longest wait for an answer of the browser, and for what a page has to show.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the browser that `CHROMIUM` names, with its pipes as descriptors 3 and 4.
const START: &str = r#"exec "${CHROMIUM:-chromium}" "$@" 3<"$IN" 4>"$OUT""#;

const OPTIONS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "about:blank",
];

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    requests: File,
    answers: Receiver<Value>,
    session: String,
    last: u64,
    /// What the page has reported: errors of its script, and refusals of its policy.
    pub(crate) complaints: Vec<String>,
    _files: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    pub(crate) fn start() -> Browser {
        let files = TempDir::new().expect("a directory");
        let pipe = |name: &str| -> PathBuf {
            let path = files.path().join(name);
            let made = Command::new("mkfifo").arg(&path).status();
            assert!(made.expect("mkfifo").success());
            path
        };
        let (input, output) = (pipe("in"), pipe("out"));
        let profile = files.path().join("profile");
        let child = Command::new("sh")
            .args(["-c", START, "sh"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(OPTIONS)
            .env("IN", &input)
            .env("OUT", &output)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        // In the order in which the shell opens them.
        let requests = OpenOptions::new().write(true).open(input);
        let answers = File::open(output).expect("a pipe");
        let mut browser = Browser {
            child,
            requests: requests.expect("a pipe"),
            answers: messages(answers),
            session: String::new(),
            last: 0,
            complaints: Vec::new(),
            _files: files,
        };
        browser.attach();
        browser
    }

    fn attach(&mut self) {
        let made = self.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = &made["targetId"];
        let attach = json!({ "targetId": target, "flatten": true });
        let attached = self.call("Target.attachToTarget", attach);
        self.session = attached["sessionId"].as_str().expect("an id").to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            self.call(domain, json!({}));
        }
    }

    /// Calls a method of the protocol.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let text = format!("{message}\0");
        let sent = self.requests.write_all(text.as_bytes());
        sent.expect("the browser lives");
        loop {
            let answer = self.answers.recv_timeout(PATIENCE);
            let mut answer = answer.unwrap_or_else(|_| panic!("no answer to {method}"));
            self.note(&answer);
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
        }
    }

    fn note(&mut self, message: &Value) {
        let parameters = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(parameters.to_string()),
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                self.complaints.push(parameters["entry"].to_string());
            }
            _ => {}
        }
    }

    pub(crate) fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
    }

    /// The value of an expression of the page, also of a promise.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression,
            "awaitPromise": true,
            "returnByValue": true,
        });
        let mut answer = self.call("Runtime.evaluate", parameters);
        let failed = &answer["exceptionDetails"];
        assert!(failed.is_null(), "{expression}: {failed}");
        answer["result"]["value"].take()
    }

    /// Waits until an expression of the page is true.
    #[track_caller]
    pub(crate) fn until(&mut self, expression: &str) {
        let began = Instant::now();
        loop {
            let parameters = json!({ "expression": expression, "returnByValue": true });
            // While a page loads, it has no functions yet.
            let answer = self.call("Runtime.evaluate", parameters);
            if answer["result"]["value"] == true {
                return;
            }
            if began.elapsed() > PATIENCE {
                let shown = self.value("document.body.innerText");
                panic!("{expression}: {answer}: {shown}: {:?}", self.complaints);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// True if this text is to be seen in the element.
    #[track_caller]
    pub(crate) fn shows(&mut self, selector: &str, text: &str) {
        let element = format!("document.querySelector({selector:?})");
        // The `innerText` of a hidden element is its text.
        self.until(&format!(
            "{element} !== null && {element}.checkVisibility() \
             && {element}.innerText.includes({text:?})"
        ));
    }

    pub(crate) fn click(&mut self, selector: &str) {
        self.value(&format!("document.querySelector({selector:?}).click()"));
    }

    /// Presses and releases a key.
    pub(crate) fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key });
            if kind == "keyDown" && key.chars().count() == 1 {
                event["text"] = json!(key);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    pub(crate) fn size(&mut self, width: u32, height: u32, is_phone: bool) {
        let size = json!({
            "width": width,
            "height": height,
            "deviceScaleFactor": 1,
            "mobile": is_phone,
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    pub(crate) fn prefer(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": [feature] }),
        );
    }

    /// Writes what is to be seen to a file.
    pub(crate) fn picture(&mut self, file: &Path) {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let data = STANDARD.decode(shot["data"].as_str().expect("a picture"));
        std::fs::write(file, data.expect("base64")).expect("a file");
    }
}

/// The messages of the browser, each ended by a zero byte.
fn messages(pipe: File) -> Receiver<Value> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for message in BufReader::new(pipe).split(0) {
            let Ok(message) = message else { return };
            let Ok(message) = serde_json::from_slice(&message) else {
                return;
            };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}
