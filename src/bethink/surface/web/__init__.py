"""The web page: memory for people who would rather look than read. Only a surface; what it shows and does are operations of the API.

`site` lets people in and finds the page; `session` knows who they are; `visit` is what a page gets and gives; `render` makes text
into markup that can hold none of its own. Each page is one module with a tuple `PAGES`, listed in `site`, and one template.
"""
