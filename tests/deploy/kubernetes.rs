//! The manifests: Kubernetes' own types parse them, with every field.

use std::io::Write;
use std::process::{Command, Stdio};

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, Namespace, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_yaml::Value;

use crate::options::{documents, extension, files, refused};

/// The unknown fields of a value: those that are missing after reading and writing it as its type.
fn unknown<T: Serialize + DeserializeOwned>(value: &Value) -> Vec<String> {
    let known: T = match serde_yaml::from_value(value.clone()) {
        Ok(known) => known,
        Err(fault) => return vec![fault.to_string()],
    };
    let mut lost = Vec::new();
    compare("", value, &serde_yaml::to_value(&known).unwrap(), &mut lost);
    lost
}

fn compare(path: &str, written: &Value, known: &Value, lost: &mut Vec<String>) {
    match (written, known) {
        (Value::Mapping(written), Value::Mapping(known)) => {
            for (key, value) in written {
                let path = format!("{path}/{}", key.as_str().unwrap());
                match known.get(key) {
                    Some(known) => compare(&path, value, known, lost),
                    None => lost.push(path),
                }
            }
        }
        (Value::Sequence(written), Value::Sequence(known)) if written.len() == known.len() => {
            for (number, (written, known)) in written.iter().zip(known).enumerate() {
                compare(&format!("{path}/{number}"), written, known, lost);
            }
        }
        _ if written == known => {}
        _ => lost.push(path.to_owned()),
    }
}

/// The containers of a pod that run the suite.
fn runs_the_suite(container: &Container) -> bool {
    container
        .image
        .as_ref()
        .is_some_and(|image| image.contains("cri-event-conformance"))
}

/// Checks the arguments of the suite, the entry point of the image.
fn takes_the_arguments(path: &str, container: &Container) {
    assert!(runs_the_suite(container), "{path}: {container:?}");
    let command = container.command.iter().flatten().skip(1);
    let arguments = command
        .chain(container.args.iter().flatten())
        .map(String::as_str);
    assert_eq!(refused(arguments), None, "{path}");
}

/// Checks that every mount refers to a volume of the pod.
fn mounts_its_volumes(path: &str, pod: &PodSpec, container: &Container) {
    let volumes = pod
        .volumes
        .iter()
        .flatten()
        .map(|volume| volume.name.as_str());
    let volumes: Vec<&str> = volumes.collect();
    for mount in container.volume_mounts.iter().flatten() {
        assert!(
            volumes.contains(&mount.name.as_str()),
            "{path}: {}",
            mount.name
        );
    }
}

pub(crate) fn manifests_have_only_fields_that_kubernetes_knows() {
    let mut checked = 0;
    for (path, text) in files() {
        if !path.starts_with("kubernetes/") || extension(&path) != Some("yaml") {
            continue;
        }
        for document in documents(&text) {
            let Some(kind) = document.get("kind") else {
                continue;
            };
            checked += 1;
            let unknown = match kind.as_str().unwrap() {
                "Namespace" => unknown::<Namespace>(&document),
                "DaemonSet" => unknown::<DaemonSet>(&document),
                "Job" => unknown::<Job>(&document),
                other => panic!("{path}: no type for {other}"),
            };
            assert!(unknown.is_empty(), "{path}: {unknown:?}");
            let template = &document["spec"]["template"];
            if template.is_null() {
                continue;
            }
            let selector = &document["spec"]["selector"]["matchLabels"];
            let labels = &template["metadata"]["labels"];
            assert!(selector.is_null() || selector == labels, "{path}");
            let pod: PodSpec = serde_yaml::from_value(template["spec"].clone()).unwrap();
            for container in &pod.containers {
                takes_the_arguments(&path, container);
                mounts_its_volumes(&path, &pod, container);
            }
        }
    }
    assert!(checked >= 4, "{checked} manifests are found");
}

/// Pods of a Job with one selector of its own share no node.
pub(crate) fn a_job_has_a_pod_for_each_node() {
    let [_, job] = &documents(&files()["kubernetes/job.yaml"])[..] else {
        panic!("it is a namespace and a job");
    };
    let spec = &job["spec"];
    assert_eq!(spec["completions"], spec["parallelism"]);
    assert_eq!(spec["completionMode"], "Indexed");
    let pod = &spec["template"]["spec"];
    let rules = &pod["affinity"]["podAntiAffinity"];
    let rule = &rules["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(rule["topologyKey"], "kubernetes.io/hostname");
    let labels = &spec["template"]["metadata"]["labels"];
    assert_eq!(&rule["labelSelector"]["matchLabels"], labels);
}

pub(crate) fn a_misspelt_field_is_noticed() {
    let pod = |key: &str| {
        let text = format!("{{containers: [], {key}: [{{operator: Exists}}]}}");
        unknown::<PodSpec>(&serde_yaml::from_str(&text).unwrap())
    };
    assert_eq!(pod("tolerations"), [""; 0]);
    assert_eq!(pod("toleration"), ["/toleration"]);
}

pub(crate) fn the_plugins_are_what_sonobuoy_expects() {
    let mut checked = 0;
    for (path, text) in files() {
        if !path.starts_with("kubernetes/sonobuoy") {
            continue;
        }
        checked += 1;
        let [plugin] = &documents(&text)[..] else {
            panic!("{path}: a plugin is one document");
        };
        let config = &plugin["sonobuoy-config"];
        let keys: Vec<&str> = config
            .as_mapping()
            .unwrap()
            .keys()
            .map(|key| key.as_str().unwrap())
            .collect();
        assert_eq!(
            keys,
            ["driver", "plugin-name", "result-format", "description"],
            "{path}"
        );
        assert_eq!(config["driver"], "DaemonSet", "{path}");
        assert_eq!(config["result-format"], "junit", "{path}");
        let unknown = [
            unknown::<PodSpec>(&plugin["podSpec"]),
            unknown::<Container>(&plugin["spec"]),
        ];
        assert!(unknown.concat().is_empty(), "{path}: {unknown:?}");
        let pod: PodSpec = serde_yaml::from_value(plugin["podSpec"].clone()).unwrap();
        let container: Container = serde_yaml::from_value(plugin["spec"].clone()).unwrap();
        takes_the_arguments(&path, &container);
        mounts_its_volumes(&path, &pod, &container);
        assert_eq!(
            container.args.iter().flatten().next().unwrap(),
            "sonobuoy",
            "{path}"
        );
    }
    assert_eq!(checked, 2);
}

/// Where the pods of a plugin cannot run, by its required anti-affinity in all namespaces: a label,
/// and the topology in which no other pod may have it.
fn kept_apart(pod: &PodSpec) -> Vec<(String, &str)> {
    let affinity = pod.affinity.iter().flat_map(|it| &it.pod_anti_affinity);
    let terms = affinity.flat_map(|it| &it.required_during_scheduling_ignored_during_execution);
    let everywhere = terms.flatten().filter(|term| {
        let namespaces = term.namespace_selector.as_ref();
        namespaces.is_some_and(|it| *it == LabelSelector::default())
    });
    let labels = everywhere.flat_map(|term| {
        let selector = term.label_selector.clone().unwrap_or_default();
        let equal = selector.match_labels.into_iter().flatten();
        let equal = equal.map(|(key, value)| format!("{key}={value}"));
        let present = selector.match_expressions.into_iter().flatten();
        let present = present
            .filter(|it| it.operator == "Exists")
            .map(|it| it.key);
        let labels = equal
            .chain(present)
            .map(|label| (label, &*term.topology_key));
        labels.collect::<Vec<_>>()
    });
    labels.collect()
}

/// A node whose kubelet is stopped for 50 s is not ready, and Services lose its endpoints.
pub(crate) fn a_plugin_that_stops_kubelets_runs_on_one_drained_node() {
    const ONE_AT_A_TIME: (&str, &str) =
        ("sonobuoy-plugin=cri-event-conformance", "kubernetes.io/os");
    const DRAINED: [&str; 3] = [
        "pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
        "batch.kubernetes.io/job-name",
    ];
    let mut checked = 0;
    for (path, text) in files() {
        if !path.starts_with("kubernetes/sonobuoy") || !text.contains("--pause-kubelet") {
            continue;
        }
        checked += 1;
        let plugin = &documents(&text)[0];
        let pod: PodSpec = serde_yaml::from_value(plugin["podSpec"].clone()).unwrap();
        let selector = pod.node_selector.clone().unwrap_or_default();
        let label = "cri-event-conformance/pause-kubelet";
        assert_eq!(
            selector.get(label).map(String::as_str),
            Some("yes"),
            "{path}"
        );
        let (label, everywhere) = ONE_AT_A_TIME;
        let mut expected = vec![(label.to_owned(), everywhere)];
        expected.extend(DRAINED.map(|label| (label.to_owned(), "kubernetes.io/hostname")));
        assert_eq!(kept_apart(&pod), expected, "{path}");
        let plugin_name = plugin["sonobuoy-config"]["plugin-name"].as_str().unwrap();
        assert_eq!(label, format!("sonobuoy-plugin={plugin_name}"), "{path}");
        assert_eq!(selector[everywhere], "linux", "{path}: all nodes share it");
    }
    assert_eq!(checked, 1);
    let page = &files()["kubernetes/README.md"];
    for why in [
        "is stopped for 50 s is not ready",
        "one pod of it in the cluster",
    ] {
        assert!(page.contains(why), "{why}");
    }
}

pub(crate) fn the_job_of_prow_has_a_pod_and_a_script() {
    let files = files();
    let [config] = &documents(&files["prow/periodic.yaml"])[..] else {
        panic!("it is one document");
    };
    let job = &config["periodics"][0];
    let lost = unknown::<PodSpec>(&job["spec"]);
    assert!(lost.is_empty(), "{lost:?}");
    let pod: PodSpec = serde_yaml::from_value(job["spec"].clone()).unwrap();
    let script = &pod.containers[0].args.as_ref().unwrap()[0];
    let mut shell = Command::new("bash");
    shell.arg("-n").stdin(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(script.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success(), "{script}");
}
