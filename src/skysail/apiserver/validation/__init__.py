"""What makes an object acceptable: pure checks over plain dictionaries, in upstream's order and words.

A check takes a value and the path it stands at, and returns a list of `FieldError`s: empty when all is well. Nothing
here changes an object, reads the store or raises; `skysail.apiserver.strategies` decides which checks a kind gets.

Read in this order: `field` (how an error is made and printed), `names` (what a name may look like), `metadata` (every
object), then the kinds.

>>> from skysail.apiserver.validation.names import dns_subdomain
>>> dns_subdomain("web.example.com")
()
"""
