"""The four ways to alter an object by a patch, and who owns which field afterwards.

    json_patch        RFC 6902, a list of operations
    merge_patch       RFC 7386, a partial object in which null removes
    strategic_patch   merge by the types' merge keys, with directives
    managed_fields    who owns what, kept up to date on every write; server-side apply, with conflicts
    managers          the entries of metadata.managedFields
    reset_fields      what an endpoint ignores, so that nobody owns it through there
    structure         a type as merging sees it: what is atomic, what is keyed by what
    field_set         sets of paths, and their wire form `fieldsV1`
    comparing         which paths two objects differ in, and which paths one object has
    merging           an applied configuration into a live object, and paths taken out of one

All are functions of values: document and patch in, document out. `decoding.patches` reads the bodies.
"""
