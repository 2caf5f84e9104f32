"""The four ways to alter an object by a patch, and who owns which field afterwards.

    json_patch        RFC 6902, a list of operations
    merge_patch       RFC 7386, a partial object in which null removes
    strategic_patch   merge by the types' merge keys, with directives
    apply             server-side apply: a manager's whole intent; conflicts with other managers
    managed_fields    who owns what: kept up to date on every write
    field_set         sets of paths, and their wire form `fieldsV1`
    go_values         equality and printing as Go has them

All are functions of values: document and patch in, document out. `decoding.patches` reads the bodies.
"""
