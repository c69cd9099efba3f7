//! What must hold of walks on the model.
