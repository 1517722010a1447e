//! Plans and jobs as JSON.

use std::path::Path;

use expect_test::expect;
use millstream_graph::JobFormat;

use crate::support::{JOB, plan, plan_of};

#[test]
fn the_plan_as_json() {
    let plan = plan(&JOB.replace("input = \"stats\"", "input = \"known\"")).expect("valid");
    let json = serde_json::to_string_pretty(&plan.describe()).expect("plain data");
    expect![[r#"
        {
          "job": "rides",
          "parallelism": 2,
          "max-parallelism": 128,
          "slots": 2,
          "tasks": [
            {
              "name": "trips -> known -> out",
              "parallelism": 2,
              "nodes": [
                {
                  "name": "trips",
                  "id": "trips",
                  "kind": "source",
                  "connector": "memory",
                  "time": {
                    "column": "at",
                    "out-of-orderness": "10s"
                  },
                  "on-error": "fail",
                  "outputs": [
                    {
                      "port": "output",
                      "columns": [
                        {
                          "name": "at",
                          "type": "timestamp"
                        },
                        {
                          "name": "city",
                          "type": "utf8"
                        },
                        {
                          "name": "line",
                          "type": "int32"
                        },
                        {
                          "name": "fare",
                          "type": "float64?"
                        },
                        {
                          "name": "rides",
                          "type": "int32"
                        }
                      ]
                    }
                  ]
                },
                {
                  "name": "known",
                  "id": "known",
                  "kind": "map",
                  "function": "m.known",
                  "inputs": [
                    "trips.output"
                  ],
                  "parameters": {
                    "limit": "5"
                  },
                  "reads": [
                    {
                      "name": "fare",
                      "type": "float64?",
                      "column": "fare",
                      "reject-null": false
                    }
                  ],
                  "on-error": "fail",
                  "outputs": [
                    {
                      "port": "output",
                      "columns": [
                        {
                          "name": "at",
                          "type": "timestamp"
                        },
                        {
                          "name": "city",
                          "type": "utf8"
                        },
                        {
                          "name": "line",
                          "type": "int32"
                        },
                        {
                          "name": "fare",
                          "type": "float64"
                        },
                        {
                          "name": "rides",
                          "type": "int32"
                        }
                      ]
                    },
                    {
                      "port": "unknown",
                      "columns": [
                        {
                          "name": "why",
                          "type": "utf8?"
                        }
                      ]
                    }
                  ]
                },
                {
                  "name": "out",
                  "id": "out",
                  "kind": "sink",
                  "connector": "memory",
                  "inputs": [
                    "known.output"
                  ]
                }
              ]
            },
            {
              "name": "stats",
              "parallelism": 2,
              "nodes": [
                {
                  "name": "stats",
                  "id": "stats",
                  "kind": "aggregate",
                  "function": "m.stats",
                  "inputs": [
                    "known.output"
                  ],
                  "reads": [
                    {
                      "name": "rides",
                      "type": "int64",
                      "column": "rides",
                      "widened-from": "int32",
                      "reject-null": false
                    }
                  ],
                  "key": [
                    "city"
                  ],
                  "window": {
                    "kind": "tumbling",
                    "size": "1h",
                    "clock": "event",
                    "trigger": "event-time",
                    "purge": false,
                    "lateness": "0ms"
                  },
                  "on-error": "fail",
                  "outputs": [
                    {
                      "port": "output",
                      "columns": [
                        {
                          "name": "city",
                          "type": "utf8"
                        },
                        {
                          "name": "hour",
                          "type": "timestamp"
                        },
                        {
                          "name": "count",
                          "type": "int64"
                        }
                      ]
                    }
                  ]
                }
              ]
            }
          ],
          "exchanges": [
            {
              "from-task": 0,
              "from-node": "known",
              "from-port": "output",
              "to-task": 1,
              "to-node": "stats",
              "partitioning": "hash",
              "key": [
                "city"
              ],
              "channels": 4
            }
          ],
          "warnings": [
            {
              "severity": "warning",
              "message": "nothing reads from the operator `stats`: its rows are dropped",
              "file": "jobs/job.toml",
              "line": 17,
              "column": 11
            }
          ]
        }"#]]
    .assert_eq(&json);
}

#[test]
fn the_same_job_as_json() {
    let table: toml::Table = JOB.parse().expect("valid TOML");
    let mut json = serde_json::to_value(table).expect("plain data");
    // The parser of this test sorts tables; the order of columns is that of the text.
    let columns =
        [("at", "timestamp"), ("city", "utf8"), ("line", "int32"), ("fare", "float64?"), ("rides", "int32")];
    json["source"]["trips"]["schema"] =
        columns.into_iter().map(|(name, kind)| (name.to_owned(), serde_json::Value::from(kind))).collect();
    let of_json =
        plan_of(&serde_json::to_string_pretty(&json).expect("plain data"), JobFormat::Json).expect("valid");
    assert_eq!(of_json.describe().to_string(), plan(JOB).expect("valid").describe().to_string());
    let spoilt =
        serde_json::to_string_pretty(&json).expect("plain data").replace("\"m.known\"", "\"m.knwon\"");
    let error = plan_of(&spoilt, JobFormat::Json).expect_err("no such function");
    expect![[r#"
        [
            ProblemRecord {
                severity: Error,
                message: "the module `m` has no function `knwon`",
                help: Some(
                    "did you mean `known`?",
                ),
                file: "jobs/job.toml",
                line: Some(
                    13,
                ),
                column: Some(
                    19,
                ),
            },
        ]
    "#]]
    .assert_debug_eq(&error.0.records());
    assert_eq!(error.to_string(), "1 error in jobs/job.toml");
}

#[test]
fn the_name_of_a_file_says_how_it_is_written() {
    assert_eq!(JobFormat::of_path(Path::new("jobs/a.JSON")), JobFormat::Json);
    assert_eq!(JobFormat::of_path(Path::new("jobs/a.toml")), JobFormat::Toml);
    assert_eq!(JobFormat::of_path(Path::new("jobs/a")), JobFormat::Toml);
}
