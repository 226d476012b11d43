//! Requests moved below the root of a case.

use zookeeper_recipes_protocol::{Operation, RequestBody};

/// The request, with all its paths below this one.
pub(super) fn below(root: &str, request: &RequestBody) -> RequestBody {
    let mut request = request.clone();
    for path in paths(&mut request) {
        path.insert_str(0, root);
    }
    request
}

fn paths(request: &mut RequestBody) -> Vec<&mut String> {
    match request {
        RequestBody::Create(it) | RequestBody::Create2(it) | RequestBody::CreateContainer(it) => {
            vec![&mut it.path]
        }
        RequestBody::CreateTtl(it) => vec![&mut it.path],
        RequestBody::Delete(it) => vec![&mut it.path],
        RequestBody::SetData(it) => vec![&mut it.path],
        RequestBody::SetAcl(it) => vec![&mut it.path],
        RequestBody::Exists(it)
        | RequestBody::GetData(it)
        | RequestBody::GetChildren(it)
        | RequestBody::GetChildren2(it) => vec![&mut it.path],
        RequestBody::GetAcl(it) | RequestBody::Sync(it) | RequestBody::GetAllChildrenNumber(it) => {
            vec![&mut it.path]
        }
        RequestBody::CheckWatches(it) | RequestBody::RemoveWatches(it) => vec![&mut it.path],
        RequestBody::AddWatch(it) => vec![&mut it.path],
        RequestBody::GetEphemerals(it) => it.prefix.iter_mut().collect(),
        RequestBody::SetWatches(it) => {
            let (data, exist) = (&mut it.data_watches, &mut it.exist_watches);
            let all = data.iter_mut().chain(exist).chain(&mut it.child_watches);
            all.collect()
        }
        RequestBody::SetWatches2(it) => {
            let (data, exist) = (&mut it.data_watches, &mut it.exist_watches);
            let once = data.iter_mut().chain(exist).chain(&mut it.child_watches);
            let persistent = it.persistent_watches.iter_mut();
            let recursive = &mut it.persistent_recursive_watches;
            once.chain(persistent).chain(recursive).collect()
        }
        RequestBody::Multi(operations) | RequestBody::MultiRead(operations) => {
            operations.iter_mut().map(operation_path).collect()
        }
        _ => Vec::new(),
    }
}

fn operation_path(operation: &mut Operation) -> &mut String {
    match operation {
        Operation::Create(it) | Operation::Create2(it) | Operation::CreateContainer(it) => {
            &mut it.path
        }
        Operation::CreateTtl(it) => &mut it.path,
        Operation::Delete(it) => &mut it.path,
        Operation::SetData(it) => &mut it.path,
        Operation::Check(it) => &mut it.path,
        Operation::GetData(it) | Operation::GetChildren(it) => &mut it.path,
    }
}
