<?php
// People sign in with the password "any"; their groups are in a file that the tests change.
$users = ['exampleauth:UserPass'];
foreach (json_decode(file_get_contents(dirname(__DIR__) . '/people.json'), true) as $name => $groups) {
    $users["$name:any"] = ['uid' => [$name], 'groups' => $groups];
}
$config = ['people' => $users];
